"""Compiled programs and counted work, read from cells of `tpu.job`.

From the counts a roofline gives c and v(gamma) and, with the acceptance rates
that Leviathan et al. 2023 print, the speed of each row of their Table 2.
"""

from typing import Any, NamedTuple

from spec_t5x import theory
from spec_t5x.experiments.cells import CellStore
from spec_t5x.report import reference
from spec_t5x.report.tables import Row
from spec_t5x.tpu import chips, roofline
from spec_t5x.tpu.counting import Work

WALLTIME_COLUMNS = (
    "slice,task,draft,temperature,gamma,alpha,paper_cost_coefficient,"
    "cost_coefficient,verify_ratio,paper_expected_speed,paper_speed,"
    "predicted_speed,predicted_speed_v,predicted_speed_encoders"
).split(",")
COST_COLUMNS = (
    "slice,task,model,block,flops,weight_bytes,cache_bytes,activation_bytes,"
    "seconds,over_target_step"
).split(",")
COMPILED_COLUMNS = (
    "slice,draft,task,temperature,gamma,argument_bytes,temporary_bytes,"
    "code_bytes,memory_share,collectives,collective_bytes,relayouts,"
    "relayout_bytes,outside_relayout_bytes,carried_bytes,carried_padded_bytes,"
    "compile_cpu_seconds"
).split(",")


class Costs(NamedTuple):
  """Roofline of one slice and task.

  Attributes:
    targets: most tokens decoded.
    works: counts by model and block; block 0 is the encoder.
    chip: published figures.
  """

  targets: int
  works: dict[tuple[str, int], Work]
  chip: chips.Chip

  def seconds(self, model: str, block: int) -> float:
    """Seconds of a call."""
    return roofline.seconds(self.works[model, block], self.chip)


def costs(store: CellStore) -> dict[tuple[str, str], Costs]:
  """Reads the counts, by slice and task."""
  found = {}
  for name in store.names("counts-"):
    about, rows = store.read(name)
    works = {
        (row["model"], row["block"]): Work(*(row[f] for f in Work._fields))
        for row in rows
    }
    chip = chips.CHIPS[chips.find_slice(about["slice"]).chip]
    key = about["slice"], about["task"]
    found[key] = Costs(about["targets"], works, chip)
  return found


def walltime_rows(store: CellStore) -> list[Row]:
  """Predicts the rows of Table 2 for each slice."""
  known = costs(store)
  return [
      _walltime_row(slice_name, known[slice_name, printed["task"]], printed)
      for slice_name in dict.fromkeys(name for name, _ in known)
      for printed in reference.table("leviathan_table2_and_4")
      if _is_counted(known.get((slice_name, printed["task"])), printed)
  ]


def _is_counted(of: Costs | None, printed: dict[str, str]) -> bool:
  if of is None:
    return False
  calls = {(printed["draft"], 1), ("target", int(printed["gamma"]) + 1)}
  return calls <= of.works.keys()


def _walltime_row(slice_name: str, of: Costs, printed: dict[str, str]) -> Row:
  draft, gamma = printed["draft"], int(printed["gamma"])
  alpha = float(printed["alpha"])
  step = of.seconds("target", 1)
  c = of.seconds(draft, 1) / step
  v = of.seconds("target", gamma + 1) / step
  predict = lambda ratio: float(
      theory.walltime_improvement(alpha, gamma, c, ratio)
  )
  # A whole text, in steps of the target.
  target_start = of.seconds("target", 0) / step
  both_start = target_start + of.seconds(draft, 0) / step
  plain = target_start + of.targets
  speculative = both_start + of.targets / predict(v)
  return {
      "slice": slice_name,
      "task": printed["task"],
      "draft": draft,
      "temperature": float(printed["temperature"]),
      "gamma": gamma,
      "alpha": alpha,
      "paper_cost_coefficient": float(printed["c"]),
      "cost_coefficient": c,
      "verify_ratio": v,
      "paper_expected_speed": float(printed["expected_speed"]),
      "paper_speed": float(printed["measured_speed"]),
      "predicted_speed": predict(1.0),
      "predicted_speed_v": predict(v),
      "predicted_speed_encoders": plain / speculative,
  }


def cost_rows(store: CellStore) -> list[Row]:
  """Counts of each call with its seconds."""
  return [
      {
          "slice": slice_name,
          "task": task,
          "model": model,
          "block": block,
          **work._asdict(),
          "seconds": of.seconds(model, block),
          "over_target_step": (
              of.seconds(model, block) / of.seconds("target", 1)
          ),
      }
      for (slice_name, task), of in costs(store).items()
      for (model, block), work in of.works.items()
  ]


def compiled_rows(store: CellStore) -> list[Row]:
  """What the compiler tells of each program."""
  cells = [store.read(name)[0] for name in store.names("compiled-")]
  return [_compiled_row(cell) for cell in cells]


def _compiled_row(cell: dict[str, Any]) -> Row:
  iteration, outside = cell["iteration"], cell["outside"]
  parts = ("argument", "temporary", "output", "code")
  used = sum(cell[f"{part}_bytes"] for part in parts)
  chip = chips.CHIPS[chips.find_slice(cell["slice"]).chip]
  return cell | {
      "memory_share": used / chip.memory,
      "collectives": "; ".join(
          f"{number} {kind}"
          for kind, number in sorted(iteration["collectives"].items())
      ),
      "collective_bytes": iteration["collective_bytes"],
      "relayouts": iteration["relayouts"],
      "relayout_bytes": iteration["relayout_bytes"],
      "outside_relayout_bytes": outside["relayout_bytes"],
  }

"""The tables: CSV for machines, Markdown for people, of the same rows."""

import csv
import io
import json
import pathlib
from collections.abc import Sequence
from typing import Any

from spec_t5x import theory
from spec_t5x.experiments import cells
from spec_t5x.experiments.cells import CellStore
from spec_t5x.report import measures, reference
from spec_t5x.report.table import Table

Row = dict[str, Any]

WALLTIME_COLUMNS = (
    "task,target,draft,temperature,gamma,alpha,alpha_low,alpha_high,"
    "cost_coefficient,verify_ratio,block_efficiency,predicted_speed,"
    "predicted_speed_measured_v,measured_speed,measured_low,measured_high,"
    "target_quality,speculative_quality,paper_alpha,paper_speed,device,run"
).split(",")
ALPHA_COLUMNS = (
    "task,target,draft,alpha_t0,alpha_t1,tokens,paper_alpha_t0,"
    "paper_alpha_t1,run"
).split(",")

# Cells of tables, see `table.Table.of_rows`.
ALPHA = "{alpha:.2f} [{alpha_low:.2f}, {alpha_high:.2f}]"
SPEED = "{measured_speed:.2f}x [{measured_low:.2f}, {measured_high:.2f}]"
QUALITIES = "{target_quality:.1f} / {speculative_quality:.1f}"
DIFFERENCE = "{difference:z.1f} [{difference_low:z.1f}, {difference_high:z.1f}]"


def run_name(run: pathlib.Path) -> str:
  """'<experiment>/<run>'."""
  return f"{run.parent.name}/{run.name}"


def provenance(run: pathlib.Path) -> dict[str, Any]:
  """Where the run comes from, see `spec_t5x.provenance`."""
  return json.loads((run / "provenance.json").read_text("utf-8"))


def run_settings(run: pathlib.Path) -> dict[str, Any]:
  """What the run was asked to measure, such as the fields of its `Sweep`."""
  return provenance(run).get("settings", {})


def _weights_name(name: str) -> str:
  """The last part of 'shipped:<name>' or of a path; a training's by its run."""
  path = pathlib.PurePath(name.rpartition(":")[2])
  is_run = path.name == "model" and path.parent.name
  return path.parent.name if is_run else path.name


def walltime_rows(run: pathlib.Path) -> list[Row]:
  """Table 2 of Leviathan et al. 2023 and its prediction (Table 4), measured."""
  settings, store = run_settings(run), CellStore(run / "cells")
  rows = [
      _walltime_row(run, settings, store, name)
      for name in store.names("walltime-")
  ]
  order = list(settings.get("drafts", ()))
  return sorted(
      rows,
      key=lambda r: (order.index(r["draft"]), r["temperature"], r["gamma"]),
  )


def _walltime_row(run, settings, store: CellStore, name: str) -> Row:
  cell = measures.walltime(store, name)
  draft, temperature, gamma = (
      cell.about[key] for key in ("draft", "temperature", "gamma")
  )
  alpha = measures.alpha(store, draft, temperature).estimate
  costs = measures.step_costs(store, draft)
  c, v = costs.cost_coefficient, costs.verify_ratio(gamma)
  predict = lambda ratio: float(
      theory.walltime_improvement(alpha.value, gamma, c, ratio)
  )
  paper = reference.paper_row(settings["task"], draft, temperature)
  same_gamma = paper is not None and paper.gamma == gamma
  return {
      "task": settings["task"],
      "target": _weights_name(settings["target"]),
      "draft": draft,
      "temperature": temperature,
      "gamma": gamma,
      "alpha": alpha.value,
      "alpha_low": alpha.low,
      "alpha_high": alpha.high,
      "cost_coefficient": c,
      "verify_ratio": v,
      "block_efficiency": cell.counts.block_efficiency,
      "predicted_speed": predict(1.0),
      "predicted_speed_measured_v": predict(v),
      "measured_speed": cell.speed.value,
      "measured_low": cell.speed.low,
      "measured_high": cell.speed.high,
      "decode_speed": cell.decode_speed.value,
      "decode_low": cell.decode_speed.low,
      "decode_high": cell.decode_speed.high,
      "target_milliseconds": cell.target_milliseconds,
      **measures.quality(store, draft, temperature)._asdict(),
      "paper_alpha": paper.alpha if paper else None,
      "paper_speed": paper.speed if same_gamma else None,
      "device": cell.about["device"],
      "run": run_name(run),
  }


def best(rows: Sequence[Row], temperature: float | None = None) -> Row | None:
  """The row of the greatest measured speed, at a temperature or at any."""
  chosen = [row for row in rows if temperature in (None, row["temperature"])]
  return max(chosen, key=lambda row: row["measured_speed"], default=None)


def alpha_rows(run: pathlib.Path) -> list[Row]:
  """Table 3 of Leviathan et al. 2023, measured; whole rows only."""
  settings, store = run_settings(run), CellStore(run / "cells")
  rows = []
  for draft in settings.get("drafts", ()):
    if any(cells.alpha_name(draft, t) not in store for t in (0, 1)):
      continue
    greedy, sampled = (measures.alpha(store, draft, t) for t in (0, 1))
    papers = [reference.paper_alpha(settings["task"], draft, t) for t in (0, 1)]
    rows.append(
        {
            "task": settings["task"],
            "target": _weights_name(settings["target"]),
            "draft": draft,
            "alpha_t0": greedy.estimate.value,
            "alpha_t0_low": greedy.estimate.low,
            "alpha_t0_high": greedy.estimate.high,
            "alpha_t1": sampled.estimate.value,
            "alpha_t1_low": sampled.estimate.low,
            "alpha_t1_high": sampled.estimate.high,
            "tokens": min(greedy.tokens, sampled.tokens),
            "paper_alpha_t0": papers[0],
            "paper_alpha_t1": papers[1],
            "run": run_name(run),
        }
    )
  return rows


def _cell(value: Any) -> str:
  if value is None:
    return ""
  return f"{value:.4g}" if isinstance(value, float) else str(value)


def to_csv(rows: Sequence[Row], columns: Sequence[str]) -> str:
  """Renders rows with a header; numbers to four digits."""
  stream = io.StringIO()
  writer = csv.writer(stream, lineterminator="\n")
  writer.writerow(columns)
  writer.writerows([_cell(row[column]) for column in columns] for row in rows)
  return stream.getvalue()


def walltime_table(rows: Sequence[Row]) -> Table:
  """The walltime table as a reader wants it."""
  return Table.of_rows(
      (
          ("draft", "{draft}"),
          ("T", "{temperature:g}"),
          ("gamma", "{gamma}"),
          ("alpha|measured", ALPHA),
          ("c|measured", "{cost_coefficient:.3f}"),
          ("v(gamma)|measured", "{verify_ratio:.2f}"),
          ("tokens a target call|measured", "{block_efficiency:.2f}"),
          ("speed with c|predicted", "{predicted_speed:.2f}x"),
          (
              "speed with c and v|predicted",
              "{predicted_speed_measured_v:.2f}x",
          ),
          ("speed|measured", SPEED),
          ("speed without encoders|measured", "{decode_speed:.2f}x"),
          ("target ms/token|measured", "{target_milliseconds:.2f}"),
          ("quality plain / speculative|measured", QUALITIES),
          ("speculative less plain|measured", DIFFERENCE),
          ("alpha|printed", "{paper_alpha:.2f}"),
          ("speed|printed", "{paper_speed:.1f}x"),
      ),
      rows,
  )


def alpha_table(rows: Sequence[Row]) -> Table:
  """The alpha table, ours beside the paper's."""
  return Table.of_rows(
      (
          ("task", "{task}"),
          ("draft", "{draft}"),
          ("alpha T=0|measured", "{alpha_t0:.2f}"),
          ("alpha T=1|measured", "{alpha_t1:.2f}"),
          ("tokens", "{tokens}"),
          ("alpha T=0|printed", "{paper_alpha_t0:.2f}"),
          ("alpha T=1|printed", "{paper_alpha_t1:.2f}"),
      ),
      rows,
  )

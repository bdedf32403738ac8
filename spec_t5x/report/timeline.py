"""One decode as a timeline (Figure 5 of Leviathan et al. 2023).

Blocks are as long as their model call takes by itself (c and v of the cost
cell, medians), as many as the decode of one text needed; the encoders take
what they took in that decode. What the decode as a whole took stands beside
their sum: the difference is what the loop does besides calling models.
"""

import pathlib
import statistics
from collections.abc import Sequence

from matplotlib import pyplot as plt

from spec_t5x.experiments.cells import CellStore, cost_name, walltime_name
from spec_t5x.report import measures
from spec_t5x.report.figures import STYLE, save
from spec_t5x.report.table import Table
from spec_t5x.report.tables import Row, run_name, run_settings

COLUMNS = (
    "task,draft,gamma,example,tokens,encoder_ms,draft_steps,draft_step_ms,"
    "first_draft_step_ms,target_calls,target_call_ms,parts_ms,measured_ms,run"
).split(",")
# The paper's rows; of the gammas at hand those closest to them.
_PAPER_GAMMAS = (7, 3)
# Colour and hatch, so that blocks can be told apart in print.
_LOOKS = {
    "encoder": ("#bbbbbb", ""),
    "draft step": ("#4477aa", ""),
    "target call": ("#ee9944", "///"),
}


def rows(run: pathlib.Path) -> list[Row]:
  """For each draft the text decoded with two gammas, and plainly (gamma 0)."""
  settings, store = run_settings(run), CellStore(run / "cells")
  gammas = settings.get("gammas", ())
  if not gammas or 0 not in settings.get("temperatures", ()):
    return []
  closest = lambda wanted: min(gammas, key=lambda gamma: abs(gamma - wanted))
  chosen = dict.fromkeys(map(closest, _PAPER_GAMMAS))
  found = []
  for draft in settings["drafts"]:
    names = [walltime_name(draft, 0, gamma) for gamma in chosen]
    if any(name not in store for name in (*names, cost_name(draft))):
      continue
    costs = measures.step_costs(store, draft)
    cells = [store.read(name)[1] for name in names]
    number = _typical(cells[0])
    texts = [
        next(row for row in cell if row["example"] == number) for cell in cells
    ]
    about = {"task": settings["task"], "draft": draft, "example": number}
    for gamma, text in zip(chosen, texts, strict=True):
      found.append(about | _decode(text["speculative"], costs, gamma))
    found.append(about | _decode(texts[0]["plain"], costs, 0))
  return [row | {"run": run_name(run)} for row in found]


def _typical(cell: Sequence[Row]) -> int:
  """The text of middle length among those decoded to their end both ways."""
  whole = [
      row
      for row in cell
      if row["tokens"] == row["plain"]["emitted"]
      and row["tokens"] == row["speculative"]["emitted"]
  ]
  ranked = sorted(whole or cell, key=lambda row: row["tokens"])
  return ranked[len(ranked) // 2]["example"]


def _decode(timed: Row, costs: measures.StepCosts, gamma: int) -> Row:
  calls = timed["counts"]["iterations"]
  encoder = 1e3 * statistics.median(timed["encode_seconds"])
  draft, first = (1e3 * costs.draft[block] for block in (1, 2))
  target = 1e3 * costs.target[gamma + 1]
  drafting = first + (gamma - 1) * draft if gamma else 0.0
  total = [
      encode + decode
      for encode, decode in zip(
          timed["encode_seconds"], timed["decode_seconds"], strict=True
      )
  ]
  return {
      "gamma": gamma,
      "tokens": timed["emitted"],
      "encoder_ms": encoder,
      "draft_steps": calls * gamma,
      "draft_step_ms": draft if gamma else None,
      "first_draft_step_ms": first if gamma else None,
      "target_calls": calls,
      "target_call_ms": target,
      "parts_ms": encoder + calls * (drafting + target),
      "measured_ms": 1e3 * statistics.median(total),
  }


def blocks(row: Row) -> list[tuple[str, float, float]]:
  """Kind, start and length in milliseconds of each block of a decode."""
  found, now = [], 0.0

  def add(kind, length):
    nonlocal now
    found.append((kind, now, length))
    now += length

  add("encoder", row["encoder_ms"])
  for _ in range(row["target_calls"]):
    if row["gamma"]:
      add("draft step", row["first_draft_step_ms"])
      for _ in range(row["gamma"] - 1):
        add("draft step", row["draft_step_ms"])
    add("target call", row["target_call_ms"])
  return found


def label(row: Row) -> str:
  """What a row of the figure decodes with."""
  return f"γ = {row['gamma']}" if row["gamma"] else "plain"


def draw(rows: Sequence[Row], path: pathlib.Path) -> list[pathlib.Path]:
  """The timeline of one draft's rows; returns the files."""
  with plt.rc_context(STYLE):
    figure, axis = plt.subplots(figsize=(8, 2.4), layout="constrained")
    for place, row in enumerate(rows):
      for kind, (color, hatch) in _LOOKS.items():
        spans = [(at, size) for own, at, size in blocks(row) if own == kind]
        axis.broken_barh(
            spans,
            (place - 0.35, 0.7),
            facecolor=color,
            hatch=hatch,
            edgecolor="white",
            linewidth=0.4,
            label=kind if place == 0 else None,
        )
      axis.plot(
          [row["measured_ms"]] * 2,
          [place - 0.45, place + 0.45],
          color="black",
          label="measured end" if place == 0 else None,
      )
    axis.set_yticks(range(len(rows)), [label(row) for row in rows])
    axis.invert_yaxis()
    axis.grid(visible=False, axis="y")
    axis.set_xlabel(
        f"milliseconds, {rows[0]['tokens']} tokens, draft: {rows[0]['draft']}"
    )
    axis.legend(
        ncols=4, fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1)
    )
    return save(figure, path)


def table(rows: Sequence[Row]) -> Table:
  """A line per decode: how many calls of which length."""
  return Table.of_rows(
      (
          ("draft", "{draft}"),
          ("gamma", "{gamma}"),
          ("tokens", "{tokens}"),
          ("encoder ms|measured", "{encoder_ms:.2f}"),
          ("draft steps|measured", "{draft_steps}"),
          ("ms a draft step|measured", "{draft_step_ms:.2f}"),
          ("target calls|measured", "{target_calls}"),
          ("ms a target call|measured", "{target_call_ms:.2f}"),
          ("sum of parts ms|predicted", "{parts_ms:.2f}"),
          ("whole ms|measured", "{measured_ms:.2f}"),
      ),
      rows,
  )

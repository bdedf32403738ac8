"""One line on why ours differs from the printed, chosen by the numbers."""

import pathlib
import statistics
from collections.abc import Sequence

from spec_t5x.report import (
    chen_tables,
    claims_speed,
    lenience_tables,
    reference,
    tables,
    theory_tables,
)
from spec_t5x.report.tables import Row

_NO_WEIGHTS = (
    "T5-XXL and the paper's drafts are not run here; with their weights,"
    " configs/t5x/pairs decodes them in T5X."
)
_NONE = "No run of ours has measured this yet."


def notes(runs: Sequence[pathlib.Path]) -> dict[str, str]:
  """The line of each table, by name."""
  walltimes = [row for run in runs for row in tables.walltime_rows(run)]
  alphas = [row for run in runs for row in tables.alpha_rows(run)]
  lenient = [row for run in runs for row in lenience_tables.rows(run)]
  return {
      "table1": _table1(),
      "table2": _table2(walltimes),
      "table3": _table3(alphas),
      "table4": _table4(walltimes),
      "table5": _table5(lenient),
      "chen": _chen([r for run in runs for r in chen_tables.table1_rows(run)]),
  }


def _table1() -> str:
  rows = theory_tables.table1()
  equal = sum(
      f"{row[key]:.2f}" == f"{row[f'paper_{key}']:.2f}"
      for row in rows
      for key in ("operations", "speed")
  )
  if equal == 2 * len(rows):
    return "From the formulas; all values are the printed ones, digit by digit."
  return f"From the formulas; {equal} of {2 * len(rows)} values are printed so."


def _table2(rows: Sequence[Row]) -> str:
  matched = [row for row in rows if row["paper_speed"]]
  if not matched:
    return f"{_NO_WEIGHTS} {_NONE}"
  ratios = [row["measured_speed"] / row["paper_speed"] for row in matched]
  verify = statistics.median(row["verify_ratio"] for row in matched)
  device = matched[0]["device"]
  text = (
      f"{_NO_WEIGHTS} Ours are drafts in the same roles for a small target on"
      f" {device}: {statistics.median(ratios):.2f} times the printed speed in"
      " the median."
  )
  if verify > claims_speed.FREE:
    text += (
        " Verifying a block is not free there: it costs"
        f" {verify:.2f} steps in the median."
    )
  return text


def _table3(rows: Sequence[Row]) -> str:
  text = (
      "LaMDA and T5-XXL are not run here. Alpha depends on models and texts, so"
      " other models in the same roles have other values."
  )
  compared = [row for row in rows if row["paper_alpha_t0"] is not None]
  if not compared:
    return f"{text} {_NONE}"
  above = sum(row["alpha_t0"] > row["paper_alpha_t0"] for row in compared)
  return (
      f"{text} At temperature 0 ours is the greater in {above} of"
      f" {len(compared)} rows with both."
  )


def _table4(rows: Sequence[Row]) -> str:
  computed = theory_tables.table4()
  agree = sum(row["agrees"] for row in computed)
  text = (
      f"The paper's own expected speeds follow from its alpha and c in {agree}"
      f" of {len(computed)} rows, within rounding."
  )
  matched = [
      row
      for row in rows
      if reference.paper_row(row["task"], row["draft"], row["temperature"])
      and row["paper_speed"]
  ]
  if not matched:
    return f"{text} {_NONE}"
  error = statistics.mean(
      abs(row["predicted_speed_measured_v"] / row["measured_speed"] - 1)
      for row in matched
  )
  return (
      f"{text} Ours with c and v is {100 * error:.0f}% off the measured speed"
      " in the mean over these rows, encoders included."
  )


def _table5(rows: Sequence[Row]) -> str:
  text = (
      "The paper's pairs are T5-XXL's on WMT; ours are small models on other"
      " texts."
  )
  if not any(row["paper_alpha"] is not None for row in rows):
    return f"{text} {_NONE}"
  return f"{text} Lenience below 1 changes the law of the output."


def _chen(rows: Sequence[Row]) -> str:
  text = (
      "Chinchilla's weights are not public. The benchmarks are here, see"
      " configs/experiments/xsum.gin and humaneval.gin; the printed lines stand"
      " at the end."
  )
  if not rows:
    return f"{text} {_NONE}"
  tasks = ", ".join(dict.fromkeys(row["task"] for row in rows))
  return (
      f"{text} Ours are the pairs at hand on {tasks}, with the gamma closest to"
      " the paper's K; times without encoders."
  )

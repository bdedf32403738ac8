"""How well theorem 3.8 foretells the measured speed, form by form.

Each form corrects one thing that the theorem leaves out:

  c          the paper's: a verification costs as much as one decode step
  c and v    the measured cost of verifying gamma + 1 tokens
  places     and the measured acceptance by place instead of one alpha
  all steps  and the first draft step, which reads two tokens

The theorem is about decode steps, so it is compared with the speed without
encoders.
"""

import pathlib
from collections.abc import Sequence

import numpy as np

from spec_t5x import theory
from spec_t5x.experiments.cells import CellStore
from spec_t5x.report import measures
from spec_t5x.report.table import Table
from spec_t5x.report.tables import Row, run_name, run_settings

FORMS = ("c", "c and v", "places", "all steps")
COLUMNS = (
    "task,draft,temperature,gamma,tokens_alike,tokens_by_place,"
    "tokens_measured,speed_c,speed_c_and_v,speed_places,speed_all_steps,"
    "decode_speed,measured_speed,run"
).split(",")
ERROR_COLUMNS = "form,cells,mean_error,mean_absolute_error,worst,run".split(",")


def column(form: str) -> str:
  """Name of a form's column."""
  return f"speed_{form.replace(' ', '_')}"


def rows(run: pathlib.Path) -> list[Row]:
  """All walltime cells of a run."""
  settings, store = run_settings(run), CellStore(run / "cells")
  order = list(settings.get("drafts", ()))
  found = []
  for name in store.names("walltime-"):
    cell = measures.walltime(store, name)
    draft, temperature, gamma = (
        cell.about[key] for key in ("draft", "temperature", "gamma")
    )
    alpha = measures.alpha(store, draft, temperature).estimate.value
    costs = measures.step_costs(store, draft)
    found.append(
        {
            "task": settings["task"],
            "draft": draft,
            "temperature": temperature,
            "gamma": gamma,
            **_forms(cell.counts, alpha, costs),
            "decode_speed": cell.decode_speed.value,
            "measured_speed": cell.speed.value,
            "run": run_name(run),
        }
    )
  key = lambda r: (order.index(r["draft"]), r["temperature"], r["gamma"])
  return sorted(found, key=key)


def _forms(counts, alpha: float, costs: measures.StepCosts) -> Row:
  gamma = counts.gamma
  c, v = costs.cost_coefficient, costs.verify_ratio(gamma)
  # A place that no test ever reached adds nothing to the product either.
  by_place = theory.expected_tokens_positionwise(
      np.nan_to_num(counts.position_acceptance)
  )
  alike = float(theory.expected_tokens(alpha, gamma))
  first = costs.draft[2] / costs.target[1]
  return {
      "tokens_alike": alike,
      "tokens_by_place": by_place,
      "tokens_measured": counts.block_efficiency,
      "speed_c": alike / (1 + gamma * c),
      "speed_c_and_v": alike / (v + gamma * c),
      "speed_places": by_place / (v + gamma * c),
      "speed_all_steps": by_place / (v + (gamma - 1) * c + first),
  }


def errors(rows: Sequence[Row]) -> list[Row]:
  """Relative errors of each form over the cells of one run, as shares."""
  if not rows:
    return []
  measured = np.array([row["decode_speed"] for row in rows])
  found = []
  for form in FORMS:
    error = np.array([row[column(form)] for row in rows]) / measured - 1
    found.append(
        {
            "form": form,
            "cells": len(rows),
            "mean_error": float(error.mean()),
            "mean_absolute_error": float(np.abs(error).mean()),
            "worst": float(error[np.abs(error).argmax()]),
            "run": rows[0]["run"],
        }
    )
  return found


def table(rows: Sequence[Row]) -> Table:
  """A line per cell."""
  return Table.of_rows(
      (
          ("draft", "{draft}"),
          ("T", "{temperature:g}"),
          ("gamma", "{gamma}"),
          ("tokens by Eq 1|predicted", "{tokens_alike:.2f}"),
          ("tokens by place|predicted", "{tokens_by_place:.2f}"),
          ("tokens a target call|measured", "{tokens_measured:.2f}"),
          *(
              (f"speed with {form}|predicted", f"{{{column(form)}:.2f}}x")
              for form in FORMS
          ),
          ("speed without encoders|measured", "{decode_speed:.2f}x"),
          ("speed|measured", "{measured_speed:.2f}x"),
      ),
      rows,
  )


def error_table(rows: Sequence[Row]) -> Table:
  """A line per form: how far from the measured speed it is."""
  return Table.of_rows(
      (
          ("Thm 3.8 with", "{form}"),
          ("cells", "{cells}"),
          ("mean error|computed", "{mean_error:+.1%}"),
          ("mean absolute error|computed", "{mean_absolute_error:.1%}"),
          ("worst|computed", "{worst:+.1%}"),
      ),
      rows,
  )

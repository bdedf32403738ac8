"""Lenience (Leviathan et al. 2023, A.5 and Table 5): what it gains and costs.

Beside alpha stand the distance from the target's law, and the speed: as the
paper predicts it from alpha and c, and as measured.
"""

import itertools
import pathlib
from collections.abc import Sequence

from spec_t5x import theory
from spec_t5x.experiments import sweep_settings
from spec_t5x.experiments.alpha import cell_name
from spec_t5x.experiments.cells import CellStore
from spec_t5x.experiments.sweep import walltime_name
from spec_t5x.report import measures, reference
from spec_t5x.report.table import Table, interval, number, qualities
from spec_t5x.report.tables import Row, run_name, run_settings

COLUMNS = (
    "task,draft,temperature,lenience,alpha,alpha_low,alpha_high,tokens,"
    "distance,distance_low,distance_high,gamma,predicted_speed,"
    "measured_speed,measured_low,measured_high,target_quality,"
    "speculative_quality,paper_alpha,paper_speed,run"
).split(",")


def rows(run: pathlib.Path) -> list[Row]:
  """All leniences of a run that has any below 1, else none."""
  settings, store = run_settings(run), CellStore(run / "cells")
  leniences = settings.get("leniences")
  if not leniences:
    return []
  gamma = sweep_settings.middle(settings["gammas"])
  return [
      _row(run, settings, store, gamma, *about)
      for about in itertools.product(
          settings["drafts"], settings["temperatures"], (1.0, *leniences)
      )
      if cell_name(*about) in store
  ]


def _row(run, settings, store, gamma, draft, temperature, lenience) -> Row:
  about = (draft, temperature, lenience)
  alpha = measures.alpha(store, *about)
  distance = measures.distance(store, *about).estimate
  task = settings["task"]
  row = {
      "task": task,
      "draft": draft,
      "temperature": temperature,
      "lenience": lenience,
      "alpha": alpha.estimate.value,
      "alpha_low": alpha.estimate.low,
      "alpha_high": alpha.estimate.high,
      "tokens": alpha.tokens,
      "distance": distance.value,
      "distance_low": distance.low,
      "distance_high": distance.high,
      "gamma": gamma,
      "paper_alpha": reference.paper_alpha(task, *about),
      "paper_speed": reference.paper_lenience_speed(task, *about),
      "run": run_name(run),
  }
  return row | _speed(store, row)


def _speed(store: CellStore, row: Row) -> Row:
  """Speed and quality, as far as their cells are finished."""
  name = walltime_name(
      *(row[key] for key in ("draft", "temperature", "gamma", "lenience"))
  )
  keys = ("predicted_speed", "measured_speed", "measured_low", "measured_high")
  found = dict.fromkeys((*keys, "target_quality", "speculative_quality"))
  if f"cost-{row['draft']}" in store:
    costs = measures.step_costs(store, row["draft"])
    found["predicted_speed"] = float(
        theory.walltime_improvement(
            row["alpha"],
            row["gamma"],
            costs.cost_coefficient,
            costs.verify_ratio(row["gamma"]),
        )
    )
  if name in store:
    cell = measures.walltime(store, name)
    found |= zip(keys[1:], cell.speed, strict=True)
    found["target_quality"] = cell.about["plain_quality"]
    found["speculative_quality"] = cell.about["speculative_quality"]
  return found


def table(rows: Sequence[Row]) -> Table:
  """A line per draft, temperature and lenience."""
  return Table.of(
      "draft,T,lenience,alpha|measured,distance from the target|measured,"
      "gamma,speed with c and v|predicted,speed|measured,"
      "quality plain / lenient|measured,alpha|printed,speed|printed",
      [
          [
              row["draft"],
              f"{row['temperature']:g}",
              f"{row['lenience']:g}",
              interval(row["alpha"], row["alpha_low"], row["alpha_high"]),
              f"{row['distance']:.3f}",
              str(row["gamma"]),
              number(row["predicted_speed"], unit="x"),
              _measured(row),
              qualities(row["target_quality"], row["speculative_quality"]),
              number(row["paper_alpha"]),
              number(row["paper_speed"], ".1f", "x"),
          ]
          for row in rows
      ],
  )


def _measured(row: Row) -> str:
  keys = ("measured_speed", "measured_low", "measured_high")
  if row["measured_speed"] is None:
    return ""
  return interval(*(row[key] for key in keys), "x")

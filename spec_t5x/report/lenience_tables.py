"""Lenience (Leviathan et al. 2023, A.5 and Table 5): what it gains and costs.

Beside alpha stand the distance from the target's law, and the speed: as the
paper predicts it from alpha and c, and as measured.
"""

import itertools
import pathlib
from collections.abc import Sequence

from spec_t5x import theory
from spec_t5x.experiments import cells, sweep_settings
from spec_t5x.experiments.cells import CellStore
from spec_t5x.report import measures, reference, tables
from spec_t5x.report.table import Table
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
      if cells.alpha_name(*about) in store
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
  quality = measures.quality(store, *about)._asdict()
  return row | quality | _speed(store, row)


def _speed(store: CellStore, row: Row) -> Row:
  """Speeds, as far as their cells are finished."""
  name = cells.walltime_name(
      *(row[key] for key in ("draft", "temperature", "gamma", "lenience"))
  )
  keys = ("predicted_speed", "measured_speed", "measured_low", "measured_high")
  found = dict.fromkeys(keys)
  if cells.cost_name(row["draft"]) in store:
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
    speed = measures.walltime(store, name).speed
    found |= zip(keys[1:], speed, strict=True)
  return found


def table(rows: Sequence[Row]) -> Table:
  """A line per draft, temperature and lenience."""
  return Table.of_rows(
      (
          ("draft", "{draft}"),
          ("T", "{temperature:g}"),
          ("lenience", "{lenience:g}"),
          ("alpha|measured", tables.ALPHA),
          ("distance from the target|measured", "{distance:.3f}"),
          ("gamma", "{gamma}"),
          ("speed with c and v|predicted", "{predicted_speed:.2f}x"),
          ("speed|measured", tables.SPEED),
          ("quality plain / lenient|measured", tables.QUALITIES),
          ("lenient less plain|measured", tables.DIFFERENCE),
          ("alpha|printed", "{paper_alpha:.2f}"),
          ("speed|printed", "{paper_speed:.1f}x"),
      ),
      rows,
  )

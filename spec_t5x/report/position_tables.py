"""Acceptance by place in the block, against one rate for all (section 3.1).

Equation 1 and Theorem 3.8 take the acceptances of drafted tokens as
independent and alike. If they are, every place in the block has one rate.
"""

import math
import pathlib
from collections.abc import Sequence

from jax.scipy import special

from spec_t5x.experiments.cells import CellStore
from spec_t5x.report import measures
from spec_t5x.report.table import Table
from spec_t5x.report.tables import Row, run_name, run_settings
from spec_t5x.statistics import DecodeStatistics, wilson_interval

COLUMNS = (
    "task,draft,temperature,gamma,place,tested,accepted,rate,rate_low,"
    "rate_high,alpha_hat,alpha,chi_square,p_value,run"
).split(",")


def rows(run: pathlib.Path) -> list[Row]:
  """All places of all walltime cells of a run."""
  settings, store = run_settings(run), CellStore(run / "cells")
  order = list(settings.get("drafts", ()))
  found = []
  for name in store.names("walltime-"):
    cell = measures.walltime(store, name)
    about = {key: cell.about[key] for key in ("draft", "temperature", "gamma")}
    statistic = homogeneity(cell.counts)
    alpha = measures.alpha(store, about["draft"], about["temperature"])
    for place, tested in enumerate(cell.counts.position_tested):
      accepted = cell.counts.position_accepted[place]
      low, high = wilson_interval(accepted, tested)
      found.append(
          {
              "task": settings["task"],
              **about,
              "place": place + 1,
              "tested": tested,
              "accepted": accepted,
              "rate": accepted / tested if tested else math.nan,
              "rate_low": low,
              "rate_high": high,
              "alpha_hat": cell.counts.alpha_hat,
              "alpha": alpha.estimate.value,
              "chi_square": statistic[0],
              "p_value": statistic[1],
              "run": run_name(run),
          }
      )
  key = lambda row: (
      order.index(row["draft"]),
      row["temperature"],
      row["gamma"],
      row["place"],
  )
  return sorted(found, key=key)


def homogeneity(counts: DecodeStatistics) -> tuple[float, float]:
  """Chi-square statistic of one rate for all places, and its p-value.

  Tests of one text are alike, so that the p-value is somewhat too small.

  Args:
    counts: of one gamma.

  Returns:
    Both; NaN if fewer than two places were tested, or all tests ended alike.
  """
  rate = counts.alpha_hat
  places = [
      (tested, accepted)
      for tested, accepted in zip(
          counts.position_tested, counts.position_accepted, strict=True
      )
      if tested
  ]
  if len(places) < 2 or rate in (0, 1):
    return math.nan, math.nan
  statistic = sum(
      (accepted - tested * rate) ** 2 / (tested * rate * (1 - rate))
      for tested, accepted in places
  )
  freedom = len(places) - 1
  return statistic, float(special.gammaincc(freedom / 2, statistic / 2))


def of_longest_blocks(rows: Sequence[Row]) -> list[Row]:
  """The rows of the greatest gamma, which has all places."""
  greatest = max((row["gamma"] for row in rows), default=0)
  return [row for row in rows if row["gamma"] == greatest]


def table(rows: Sequence[Row]) -> Table:
  """A line per draft and temperature, a column per place."""
  chosen = of_longest_blocks(rows)
  places = sorted({row["place"] for row in chosen})
  lines = {}
  for row in chosen:
    lines.setdefault((row["draft"], row["temperature"]), {})[row["place"]] = row
  body = []
  for (draft, temperature), cells in lines.items():
    first = cells[places[0]]
    body.append(
        [
            draft,
            f"{temperature:g}",
            *(_rate(cells[place]) for place in places),
            f"{first['alpha_hat']:.2f}",
            f"{first['alpha']:.2f}",
            _probability(first["p_value"]),
        ]
    )
  head = [
      "draft",
      "T",
      *(f"place {place}|measured" for place in places),
      "all places|measured",
      "alpha (3.6)|measured",
      "p of one rate|computed",
  ]
  return Table.of(",".join(head), body)


def _rate(row: Row) -> str:
  if not row["tested"]:
    return ""
  return f"{row['rate']:.2f} [{row['rate_low']:.2f}, {row['rate_high']:.2f}]"


def _probability(value: float) -> str:
  if math.isnan(value):
    return ""
  return "< 0.001" if value < 0.001 else f"{value:.3f}"

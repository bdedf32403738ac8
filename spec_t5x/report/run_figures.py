"""All figures of a run, each with the words that stand for it."""

import functools
import itertools
import pathlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from spec_t5x.report import (
    chen_figures,
    chen_tables,
    chen_theory,
    figures,
    lenience_tables,
    position_tables,
    prediction_tables,
    tables,
    timeline,
    traces,
)
from spec_t5x.report.tables import Row


class Figure(NamedTuple):
  """A figure of a run.

  Attributes:
    name: of its file, without suffix.
    caption: what it shows.
    alternative: what one would read aloud instead of showing it.
    draw: writes it, given a path without suffix, and returns the files.
  """

  name: str
  caption: str
  alternative: str
  draw: Callable[[pathlib.Path], list[pathlib.Path]]


def of_run(run: pathlib.Path) -> list[Figure]:
  """The figures that the cells of a run allow."""
  return [
      figure
      for rows_of, figures_of in _FIGURES
      if (rows := rows_of(run))
      for figure in figures_of(rows)
  ]


def draw(run: pathlib.Path) -> list[pathlib.Path]:
  """Writes all figures and traces of a run; returns the files."""
  folder = run / "figures"
  chosen, traced = of_run(run), traces.read(run)
  if not chosen and not traced:
    return []
  folder.mkdir(exist_ok=True)
  written = []
  for figure in chosen:
    written += figure.draw(folder / figure.name)
  for each in traced:
    written += traces.draw(each, folder)
  return written


def _against_gamma(rows: Sequence[Row]) -> list[Figure]:
  best = tables.best(rows)
  drafts = ", ".join(dict.fromkeys(row["draft"] for row in rows))
  return [
      Figure(
          "speed",
          "Speed against gamma: measured (with its range over texts and"
          " passes), and predicted by Theorem 3.8 with c alone and with the"
          " measured v.",
          f"Curves for the drafts {drafts}. The fastest measured is"
          f" {best['draft']} with gamma {best['gamma']} at temperature"
          f" {best['temperature']:g}, {best['measured_speed']:.2f} times plain"
          " decoding.",
          functools.partial(figures.speed_against_gamma, rows),
      ),
      Figure(
          "tokens",
          "Tokens per target call against gamma: measured, and predicted by"
          " Equation 1 with one alpha.",
          f"Curves for the drafts {drafts}. At the greatest gamma"
          f" {best['draft']} makes"
          f" {_longest(rows, best)['block_efficiency']:.2f} tokens a call.",
          functools.partial(figures.tokens_against_gamma, rows),
      ),
  ]


def _chen(rows: Sequence[Row]) -> list[Figure]:
  best = min(rows, key=lambda row: row["token_milliseconds"])
  return [
      Figure(
          "chen_figure1",
          f"Time of {chen_theory.FIGURE_TOKENS} tokens (with the range of the"
          " passes), acceptance rate and time of a loop against K, measured;"
          " K = 0 is plain decoding (Figure 1 of Chen et al. 2023).",
          f"The least time of a token is {best['token_milliseconds']:.2f} ms,"
          f" with {best['draft']}, {chen_tables.sampling(best)}, K ="
          f" {best['gamma']}, whose loop takes"
          f" {best['loop_milliseconds']:.2f} ms.",
          functools.partial(chen_figures.measured, rows),
      )
  ]


def _positions(rows: Sequence[Row]) -> list[Figure]:
  longest = position_tables.of_longest_blocks(rows)
  return [
      Figure(
          "positions",
          "Acceptance by place in the block, measured with 95% intervals;"
          f" places of fewer than {figures.FEW_TESTS} tests are left out."
          " Dashed: alpha over all positions (Corollary 3.6).",
          "One curve per draft over places 1 to"
          f" {longest[-1]['gamma']}; the table has the numbers.",
          functools.partial(figures.acceptance_by_place, longest),
      )
  ]


def _predictions(rows: Sequence[Row]) -> list[Figure]:
  error = {row["form"]: row for row in prediction_tables.errors(rows)}
  percent = lambda form: f"{100 * error[form]['mean_absolute_error']:.0f}%"
  return [
      Figure(
          "predictions",
          "Speed predicted by Theorem 3.8 against the measured one, without"
          " encoders. Hollow: c alone; filled: measured v, acceptance by"
          " place, and the two-token draft step.",
          "On the diagonal prediction and measurement are equal. The mean"
          f" absolute error is {percent('c')} with c alone and"
          f" {percent('all steps')} with everything measured.",
          functools.partial(figures.predicted_against_measured, rows),
      )
  ]


def _longest(rows, best):
  """The row of the greatest gamma, else like the best one."""
  same = lambda row: all(
      row[key] == best[key] for key in ("draft", "temperature")
  )
  return max(filter(same, rows), key=lambda row: row["gamma"])


def _timed_lenience(run: pathlib.Path) -> list[Row]:
  return [row for row in lenience_tables.rows(run) if row["measured_speed"]]


def _lenience(rows: Sequence[Row]) -> list[Figure]:
  farthest = max(rows, key=lambda row: row["distance"])
  return [
      Figure(
          "lenience",
          "What lenience gains and what it costs: distance from the target's"
          " law against speed, both measured.",
          f"One curve per draft. The farthest is {farthest['draft']} with"
          f" lenience {farthest['lenience']:g} at temperature"
          f" {farthest['temperature']:g}: distance"
          f" {farthest['distance']:.2f}, speed"
          f" {farthest['measured_speed']:.2f}.",
          functools.partial(figures.distance_against_speed, rows),
      )
  ]


def _timelines(rows: Sequence[Row]) -> list[Figure]:
  found = []
  for draft, group in itertools.groupby(rows, key=lambda row: row["draft"]):
    decodes = list(group)
    took = ", ".join(
        f"{timeline.label(row)}: {row['target_calls']} target calls,"
        f" {row['measured_ms']:.0f} ms"
        for row in decodes
    )
    found.append(
        Figure(
            f"timeline-{draft}",
            f"One decode with the draft {draft}, call by call, each as long as"
            " measured by itself; the black mark is where the decode as a"
            " whole ended (Figure 5).",
            f"Encoders first, then rounds of draft steps and a target call."
            f" {took}.",
            functools.partial(timeline.draw, decodes),
        )
    )
  return found


_FIGURES = (
    (tables.walltime_rows, _against_gamma),
    (chen_tables.rows, _chen),
    (position_tables.rows, _positions),
    (prediction_tables.rows, _predictions),
    (_timed_lenience, _lenience),
    (timeline.rows, _timelines),
)

"""Rebuilds everything under `results/` that is made from cells."""

import pathlib
from collections.abc import Sequence

from spec_t5x.experiments.cells import write_text
from spec_t5x.report import figures, measures, tables


def build(results: pathlib.Path) -> list[pathlib.Path]:
  """Writes the tables and figures of all runs; returns the files.

  The same cells give the same bytes.

  Args:
    results: directory of `<experiment>/<run>/cells`.

  Raises:
    FileNotFoundError: there is no run.
  """
  runs = measures.runs(results)
  if not runs:
    raise FileNotFoundError(f"{results} holds no run of a sweep.")
  directory = results / "tables"
  directory.mkdir(exist_ok=True)
  walltimes = {run: tables.walltime_rows(run) for run in runs}
  alphas = {run: tables.alpha_rows(run) for run in runs}
  written = [
      _write(
          directory / "walltime.csv",
          tables.to_csv(_flat(walltimes), tables.WALLTIME_COLUMNS),
      ),
      _write(
          directory / "alpha.csv",
          tables.to_csv(_flat(alphas), tables.ALPHA_COLUMNS),
      ),
      _write(
          directory / "walltime.md",
          _sections(walltimes, results, tables.walltime_markdown),
      ),
      _write(
          directory / "alpha.md",
          _sections(alphas, results, tables.alpha_markdown),
      ),
  ]
  for run, rows in walltimes.items():
    if not rows:
      continue
    for name, draw in (
        ("speed", figures.speed_against_gamma),
        ("tokens", figures.tokens_against_gamma),
    ):
      path = run / "figures" / name
      path.parent.mkdir(exist_ok=True)
      draw(rows, path)
      written += [path.with_suffix(".png"), path.with_suffix(".svg")]
  return written


def _flat(rows: dict[pathlib.Path, list[tables.Row]]) -> list[tables.Row]:
  return [row for of_run in rows.values() for row in of_run]


def _sections(rows, results: pathlib.Path, render) -> str:
  return "\n".join(
      f"### {run.relative_to(results).as_posix()}\n\n{render(of_run)}"
      for run, of_run in rows.items()
      if of_run
  )


def _write(path: pathlib.Path, text: str) -> pathlib.Path:
  write_text(path, text)
  return path


def best(rows: Sequence[tables.Row], temperature: float) -> tables.Row | None:
  """The row of the greatest measured speed at a temperature."""
  chosen = [row for row in rows if row["temperature"] == temperature]
  return max(chosen, key=lambda row: row["measured_speed"], default=None)

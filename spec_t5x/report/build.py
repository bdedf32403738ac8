"""Rebuilds everything under `results/` but the cells that runs measured."""

import pathlib
from collections.abc import Sequence

from spec_t5x import atomic
from spec_t5x.report import (
    figures,
    lenience_tables,
    measures,
    tables,
    theory_figures,
    theory_tables,
)


def build(results: pathlib.Path) -> list[pathlib.Path]:
  """Writes the tables and figures of theory and of all runs.

  The same cells give the same bytes.

  Args:
    results: directory of `<experiment>/<run>/cells`; may hold none.

  Returns:
    The files.

  Raises:
    FileNotFoundError: there is no such directory.
  """
  if not results.is_dir():
    raise FileNotFoundError(f"There is no directory of results {results}.")
  written = build_theory(results / "theory")
  runs = measures.runs(results)
  return written + build_runs(runs, results) if runs else written


def build_theory(directory: pathlib.Path) -> list[pathlib.Path]:
  """Writes what the paper prints from theory alone; returns the files."""
  directory.mkdir(exist_ok=True)
  written = [
      _write(directory / f"{name}.csv", theory_tables.csv_of(name))
      for name in theory_tables.TABLES
  ]
  written.append(_write(directory / "theory.md", theory_tables.report()))
  return written + theory_figures.draw(directory)


def build_runs(
    runs: Sequence[pathlib.Path], results: pathlib.Path
) -> list[pathlib.Path]:
  """Writes the tables and figures of runs; returns the files."""
  directory = results / "tables"
  directory.mkdir(exist_ok=True)
  written = []
  for name, rows_of, columns, render in (
      (
          "walltime",
          tables.walltime_rows,
          tables.WALLTIME_COLUMNS,
          tables.walltime_markdown,
      ),
      ("alpha", tables.alpha_rows, tables.ALPHA_COLUMNS, tables.alpha_markdown),
      (
          "lenience",
          lenience_tables.rows,
          lenience_tables.COLUMNS,
          lenience_tables.to_markdown,
      ),
  ):
    rows = {run: rows_of(run) for run in runs}
    written += [
        _write(directory / f"{name}.csv", tables.to_csv(_flat(rows), columns)),
        _write(directory / f"{name}.md", _sections(rows, results, render)),
    ]
  for run in runs:
    rows = tables.walltime_rows(run)
    if rows:
      folder = run / "figures"
      folder.mkdir(exist_ok=True)
      written += figures.speed_against_gamma(rows, folder / "speed")
      written += figures.tokens_against_gamma(rows, folder / "tokens")
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
  atomic.write_text(path, text)
  return path


def best(rows: Sequence[tables.Row], temperature: float) -> tables.Row | None:
  """The row of the greatest measured speed at a temperature."""
  chosen = [row for row in rows if row["temperature"] == temperature]
  return max(chosen, key=lambda row: row["measured_speed"], default=None)

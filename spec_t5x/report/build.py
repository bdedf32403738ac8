"""Rebuilds everything under `results/` but the cells that runs measured."""

import pathlib
from collections.abc import Sequence

from spec_t5x import atomic
from spec_t5x.report import (
    claims_acceptance,
    claims_reprojection,
    claims_speed,
    findings,
    measures,
    page,
    run_figures,
    tables,
    theory_figures,
    theory_tables,
    tpu_tables,
    training,
)
from spec_t5x.report.sections import SECTIONS, Section

_CLAIMS = (
    *claims_acceptance.CLAIMS,
    *claims_speed.CLAIMS,
    *claims_reprojection.CLAIMS,
)


def build(results: pathlib.Path) -> list[pathlib.Path]:
  """Writes tables and figures of theory and of all runs, findings and page.

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
  runs = measures.runs(results)
  written = build_theory(results / "theory")
  if runs:
    written += build_runs(runs, results)
  for directory in tpu_tables.directories(results):
    written += tpu_tables.build(directory)
  written += training.build(results / "training")
  theory = claims_speed.theory_finding()
  found = findings.findings(_CLAIMS, runs)
  missing = findings.unmeasured(_CLAIMS, found)
  markdown = findings.to_markdown(results, theory, found, missing)
  html = page.render(results, runs, [theory, *found], missing)
  return [
      *written,
      _write(results / "FINDINGS.md", markdown),
      _write(results / "index.html", html),
  ]


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
  for section in SECTIONS:
    rows = {run: of_run for run in runs if (of_run := section.rows(run))}
    if rows:
      written += _write_section(section, rows, results, directory)
  for run in runs:
    written += run_figures.draw(run)
  return written


def _write_section(section: Section, rows, results, directory):
  flat = [row for of_run in rows.values() for row in of_run]
  text = "\n".join(
      f"### {run.relative_to(results).as_posix()}\n\n"
      f"{section.table(of_run).markdown()}"
      for run, of_run in rows.items()
  )
  return [
      _write(
          directory / f"{section.name}.csv",
          tables.to_csv(flat, section.columns),
      ),
      _write(
          directory / f"{section.name}.md",
          f"## {section.title}\n\n{section.note}\n\n{text}",
      ),
  ]


def _write(path: pathlib.Path, text: str) -> pathlib.Path:
  atomic.write_text(path, text)
  return path

"""`index.html`: everything under `results/` on one static page."""

import importlib.resources
import pathlib
import re
from collections.abc import Sequence
from typing import Any

import jinja2

from spec_t5x.experiments.cells import CellStore
from spec_t5x.report import (
    findings,
    headline,
    page_tables,
    run_figures,
    tables,
    theory_tables,
    traces,
)
from spec_t5x.report.findings import Claim, Finding
from spec_t5x.report.page_tables import Shown
from spec_t5x.report.sections import SECTIONS

_KINDS = (
    ("measured", "seconds and counts of runs on the machine named with them"),
    ("predicted", "by a formula, from measured or printed quantities"),
    ("computed", "by a formula alone"),
    ("compiled", "told by a compiler; not run"),
    ("printed", "in the paper"),
    ("simulated", "drawn at random, not decoded"),
)
_VERDICTS = {
    findings.HOLDS: "holds",
    findings.PARTLY: "part",
    findings.OPEN: "part",
    findings.FAILS: "fails",
}
_THEORY_FIGURES = (
    (
        "theory/figure2.svg",
        "Figure 2: expected tokens per target call against alpha.",
        "Curves for gamma 1, 3, 5, 7 and unlimited rise from between 1.5 and 2"
        " tokens at alpha 0.5 to between 1.9 and 10 at alpha 0.9.",
    ),
    (
        "theory/figure3.svg",
        "Figure 3: the gamma of the greatest speed against alpha.",
        "Steps for c = 0.01, 0.02, 0.05 and 0.1 rise with alpha, the lower the"
        " c the steeper; the table below has the numbers.",
    ),
    (
        "theory/figure4.svg",
        "Figure 4: speed and operations against alpha, c = 0.",
        "Speed rises with alpha and, where alpha is great, with gamma;"
        " operations fall with alpha and rise with gamma.",
    ),
    (
        "theory/rejection.svg",
        "A.2: acceptance of speculative decoding and of rejection sampling.",
        "Both are 1 where draft and target are alike; elsewhere rejection"
        " sampling accepts less, down to under 0.01 where speculative decoding"
        " accepts 0.41.",
    ),
    (
        "theory/chen_figure1.svg",
        "Chen et al. 2023, Figure 1: what was read off the plot, and a model of"
        " time. Nothing in it is measured here.",
        "The time of 128 tokens falls steeply to K = 2 and is flat from K = 3;"
        " the acceptance rate falls from 1, to 0.45 for XSum and 0.68 for"
        " HumanEval; the time of a loop rises from 14.1 ms to 28.6 ms.",
    ),
)
# What is shown of `provenance.json`.
_ABOUT = (
    "device",
    "command",
    "commit",
    "dirty",
    "started",
    "dtype",
    "seed",
    "versions",
    "data",
)
_NUMBER = re.compile(r"[-+<]?\s?\d[\d.,:%xX\[\] /to+-]*")


def render(
    results: pathlib.Path,
    runs: Sequence[pathlib.Path],
    found: Sequence[Finding],
    missing: Sequence[Claim],
) -> str:
  """The page.

  Args:
    results: directory that the page will lie in.
    runs: directories of the runs.
    found: the findings.
    missing: claims that no run measured.
  """
  folder = importlib.resources.files("spec_t5x") / "data" / "page"
  environment = jinja2.Environment(
      autoescape=True,
      trim_blocks=True,
      lstrip_blocks=True,
      undefined=jinja2.StrictUndefined,
  )
  template = environment.from_string(
      (folder / "index.html.jinja").read_text("utf-8")
  )
  style = (folder / "style.css").read_text("utf-8")
  shown = [_run(run) for run in runs]
  others = page_tables.others(results)
  page = template.render(
      style=style,
      lead=_lead(runs),
      fastest=headline.table(headline.rows(runs)),
      contents=_contents(shown, others),
      kinds=_KINDS,
      classes=_classes,
      verdicts=_VERDICTS,
      findings=found,
      judged=list(
          dict.fromkeys(run for each in found for run in each.judgements)
      ),
      missing=missing,
      papers=page_tables.papers(runs),
      theory_figures=_THEORY_FIGURES,
      grid=theory_tables.figure3_table(),
      rejection=theory_tables.rejection_table(),
      runs=shown,
      others=others,
  )
  return re.sub(r"\n{2,}", "\n", page).lstrip() + "\n"


def _lead(runs) -> str:
  """The fastest of all that runs measured; empty if none did."""
  best = tables.best([row for run in runs for row in tables.walltime_rows(run)])
  if not best:
    return ""
  return (
      f"The fastest here, {best['run']}: {best['measured_speed']:.2f} times as"
      f" fast as plain decoding ({best['measured_low']:.2f} to"
      f" {best['measured_high']:.2f}), with the draft {best['draft']},"
      f" gamma {best['gamma']}, temperature {best['temperature']:g}, on"
      f" {best['device']}."
  )


def _contents(shown, others) -> list[tuple[str, str]]:
  parts = [
      ("findings", "What holds"),
      ("tables", "The papers' tables"),
      ("theory", "Figures from theory"),
      *((run["id"], f"Run {run['name']}") for run in shown),
  ]
  return parts + ([("others", "More tables")] if others else [])


def _run(run: pathlib.Path) -> dict[str, Any]:
  """What the page shows of a run."""
  record = tables.provenance(run)
  about = [(key, _text(record[key])) for key in _ABOUT if key in record]
  sections = [
      Shown(section.title, section.note, section.table(rows), (), section.name)
      for section in SECTIONS
      if (rows := section.rows(run))
  ]
  name = tables.run_name(run)
  return {
      "id": "run-" + re.sub(r"[^\w-]", "-", name),
      "name": name,
      "about": about,
      "configs": [path.name for path in sorted(run.glob("*.gin"))],
      "cells": CellStore(run / "cells").names(),
      "figures": run_figures.of_run(run),
      "traces": traces.read(run),
      "sections": sections,
  }


def _text(value: Any) -> str:
  """A value of `provenance.json` in a line."""
  if isinstance(value, dict):
    return ", ".join(f"{key} {_text(part)}" for key, part in value.items())
  if isinstance(value, list):
    return " ".join(map(str, value))
  return str(value)


def _classes(kind: str, cell: str) -> str | None:
  """Classes of a cell: numbers stand right, measured ones on a ground."""
  names = []
  if _NUMBER.fullmatch(cell) or kind and not cell:
    names.append("number")
  if kind == "measured" and cell:
    names.append("of-measured")
  return " ".join(names) or None

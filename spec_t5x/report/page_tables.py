"""The tables of the page that belong to no run of ours alone."""

import csv
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

from spec_t5x.experiments.cells import CellStore
from spec_t5x.report import (
    chen_theory,
    measures,
    paper_notes,
    paper_tables,
    theory_tables,
    tpu_tables,
    training,
)
from spec_t5x.report.sections import SECTIONS
from spec_t5x.report.table import KINDS, Column, Table

# How the columns of other CSV files tell what they are.
_PREFIXES = {"paper_": "printed", "predicted_": "predicted"} | {
    f"{kind}_": kind for kind in KINDS
}


class Shown(NamedTuple):
  """A table with its words.

  Attributes:
    title: of the table.
    note: one line on differences, or on how to read it.
    table: the table.
    files: raw files, relative to the page.
    name: of a section's files.
  """

  title: str
  note: str
  table: Table
  files: Sequence[str] = ()
  name: str = ""


def papers(runs: Sequence[pathlib.Path]) -> list[Shown]:
  """The papers' tables, ours beside the printed values."""
  notes = paper_notes.notes(runs)
  return [
      Shown(
          "Leviathan et al. 2023, Table 1: operations and speed, c = 0",
          notes["table1"],
          theory_tables.table1_table(),
          ["theory/table1.csv"],
      ),
      *(
          Shown(
              f"Leviathan et al. 2023, Table {number}: {title}",
              notes[f"table{number}"],
              table_of(runs),
              _existing(runs, f"tables/{name}.csv"),
          )
          for number, title, table_of, name in (
              (2, "walltime", paper_tables.table2, "walltime"),
              (3, "acceptance rates", paper_tables.table3, "alpha"),
              (4, "expected and measured", paper_tables.table4, "walltime"),
              (5, "lenience", paper_tables.table5, "lenience"),
          )
      ),
      *_chen(runs, notes["chen"]),
  ]


def _chen(runs: Sequence[pathlib.Path], note: str) -> list[Shown]:
  """The tables of Chen et al. 2023: measured, and by a model of time."""
  return [
      Shown(
          "Chen et al. 2023, Table 1: speculative sampling",
          note,
          paper_tables.chen_table1(runs),
          _existing(runs, "tables/chen_table1.csv"),
      ),
      Shown(
          "Chen et al. 2023, Table 1: speeds by a model of time",
          chen_theory.TABLE_NOTE,
          chen_theory.table1_table(),
          ["theory/chen_table1.csv"],
      ),
      Shown(
          "Chen et al. 2023, Figure 1: the points read off",
          chen_theory.figure_note(),
          chen_theory.figure1_table(),
          ["theory/chen_figure1.csv"],
      ),
  ]


def _existing(runs, name: str) -> list[str]:
  """A file of the results, if there is one."""
  if not runs:
    return []
  results = runs[0].parents[1]
  return [name] if (results / name).exists() else []


def others(results: pathlib.Path) -> list[Shown]:
  """Of the training and the TPU compiler, and CSV files of other programs."""
  known = {f"{section.name}.csv" for section in SECTIONS}
  paths = [
      path
      for path in sorted(results.glob("tables/*.csv"))
      if path.name not in known
  ]
  for run in measures.runs(results):
    paths += sorted(run.glob("*.csv"))
  found = _trained(results) + _compiled(results)
  for path in paths:
    head, *body = csv.reader(path.read_text("utf-8").splitlines())
    columns = tuple(Column(name, _kind(name)) for name in head)
    title = path.relative_to(results).as_posix()
    note = f"As it stands in {title}."
    found.append(Shown(title, note, Table(columns, body), [title]))
  return found


def _trained(results: pathlib.Path) -> list[Shown]:
  rows = training.rows(results / "training")
  if not rows:
    return []
  files = ["training/training.csv", "training/curves.svg"]
  table = training.table(rows)
  return [Shown(training.TITLE, training.NOTE, table, files)]


def _compiled(results: pathlib.Path) -> list[Shown]:
  found = []
  for directory in tpu_tables.directories(results):
    store = CellStore(directory / "cells")
    folder = directory.relative_to(results).as_posix()
    for each in tpu_tables.TABLES:
      if rows := each.rows(store):
        found.append(
            Shown(
                f"On TPUs, not run there. {each.title}",
                "Compiled by the TPU compiler for described chips, and"
                f" predicted by a roofline; see {folder}/tpu.md.",
                each.table(rows),
                [f"{folder}/{each.name}.csv", f"{folder}/tpu.md"],
            )
        )
  return found


def _kind(name: str) -> str:
  """What a column says that it is."""
  for prefix, kind in _PREFIXES.items():
    if name.startswith(prefix):
      return kind
  return ""

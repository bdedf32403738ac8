"""The README's table: the fastest of each run, beside the paper's row."""

import pathlib
from collections.abc import Sequence

from spec_t5x import atomic
from spec_t5x.report import reference, tables
from spec_t5x.report.table import Table, interval, number
from spec_t5x.report.tables import Row

_BEGIN = "<!-- Made by scripts/report.py. -->\n"
_END = "<!-- End of what scripts/report.py made. -->\n"


def rows(runs: Sequence[pathlib.Path]) -> list[Row]:
  """The fastest row of each run and temperature."""
  found = []
  for run in runs:
    measured = tables.walltime_rows(run)
    for temperature in sorted({row["temperature"] for row in measured}):
      found.append(tables.best(measured, temperature))
  return found


def table(chosen: Sequence[Row]) -> Table:
  """A line per run and temperature; the paper's row is of its best gamma."""
  return Table.of(
      "run,draft,T,gamma,alpha|measured,c|measured,v(gamma)|measured,"
      "speed|measured,paper's gamma|printed,paper's alpha|printed,"
      "paper's speed|printed",
      [[*_ours(row), *_paper(row)] for row in chosen],
  )


def _ours(row: Row) -> list[str]:
  keys = ("measured_speed", "measured_low", "measured_high")
  return [
      row["run"],
      row["draft"],
      f"{row['temperature']:g}",
      str(row["gamma"]),
      f"{row['alpha']:.2f}",
      f"{row['cost_coefficient']:.3f}",
      f"{row['verify_ratio']:.2f}",
      interval(*(row[key] for key in keys), "x"),
  ]


def _paper(row: Row) -> list[str]:
  paper = reference.paper_row(row["task"], row["draft"], row["temperature"])
  if paper is None:
    return [""] * 3
  return [
      str(paper.gamma),
      number(paper.alpha),
      number(paper.speed, ".1f", "x"),
  ]


def update(
    readme: pathlib.Path, runs: Sequence[pathlib.Path]
) -> list[pathlib.Path]:
  """Puts the table between its marks.

  Args:
    readme: file to rewrite.
    runs: directories of runs.

  Returns:
    The file, in a list; an empty one if it has no marks or is not there.
  """
  if not readme.is_file():
    return []
  before, begin, rest = readme.read_text("utf-8").partition(_BEGIN)
  _, end, after = rest.partition(_END)
  if not end:
    return []
  text = f"\n{table(rows(runs)).markdown()}\n"
  atomic.write_text(readme, before + begin + text + end + after)
  return [readme]

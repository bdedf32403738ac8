"""The README's table: each draft's fastest gamma, beside the paper's row."""

import pathlib
from collections.abc import Sequence

from spec_t5x import atomic
from spec_t5x.draft import is_model
from spec_t5x.report import reference, tables
from spec_t5x.report.table import Table
from spec_t5x.report.tables import Row

_BEGIN = "<!-- Made by scripts/report.py. -->\n"
_END = "<!-- End of what scripts/report.py made. -->\n"


def rows(runs: Sequence[pathlib.Path]) -> list[Row]:
  """The fastest row of each run, draft model and temperature."""
  found = []
  for run in runs:
    measured = tables.walltime_rows(run)
    for role in _models(run, measured):
      of_draft = [row for row in measured if row["draft"] == role]
      for temperature in sorted({row["temperature"] for row in of_draft}):
        found.append(tables.best(of_draft, temperature))
  return found


def _models(run: pathlib.Path, measured: Sequence[Row]) -> list[str]:
  """The drafts that are models, in the order of their rows."""
  weights = tables.run_settings(run).get("drafts", {})
  drafts = dict.fromkeys(row["draft"] for row in measured)
  return [role for role in drafts if is_model(weights[role])]


def table(chosen: Sequence[Row]) -> Table:
  """A line per row; what the paper prints is of its own best gamma."""
  return Table.of_rows(
      (
          ("run", "{run}"),
          ("draft", "{draft}"),
          ("T", "{temperature:g}"),
          ("gamma", "{gamma}"),
          ("alpha|measured", "{alpha:.2f}"),
          ("c|measured", "{cost_coefficient:.3f}"),
          ("v(gamma)|measured", "{verify_ratio:.2f}"),
          ("speed|measured", tables.SPEED),
          ("paper's gamma|printed", "{best_gamma}"),
          ("paper's alpha|printed", "{best_alpha:.2f}"),
          ("paper's speed|printed", "{best_speed:.1f}x"),
      ),
      [row | _printed(row) for row in chosen],
  )


def _printed(row: Row) -> Row:
  """The paper's row of the same task, draft and temperature, if it has one."""
  paper = reference.paper_row(row["task"], row["draft"], row["temperature"])
  return {
      f"best_{name}": getattr(paper, name, None)
      for name in ("gamma", "alpha", "speed")
  }


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

"""The papers' printed figures, shipped with the package as CSV."""

import csv
import functools
import importlib.resources
from typing import NamedTuple

# Our roles and tasks under the names of Leviathan et al. 2023.
_TASKS = {"ende": "EnDe", "summ": "CNNDM"}
_DRAFTS = {"small": "T5-small", "base": "T5-base", "large": "T5-large"}


class PaperRow(NamedTuple):
  """A row of Tables 2 and 4 of Leviathan et al. 2023."""

  alpha: float
  gamma: int
  speed: float


def table(name: str) -> list[dict[str, str]]:
  """Reads one of the shipped tables, as text."""
  path = (
      importlib.resources.files("spec_t5x") / "data/reference" / f"{name}.csv"
  )
  return list(csv.DictReader(path.read_text("utf-8").splitlines()))


@functools.cache
def _walltimes() -> dict[tuple[str, str, float], PaperRow]:
  return {
      (row["task"], row["draft"], float(row["temperature"])): PaperRow(
          float(row["alpha"]), int(row["gamma"]), float(row["measured_speed"])
      )
      for row in table("leviathan_table2_and_4")
  }


def paper_row(task: str, draft: str, temperature: float) -> PaperRow | None:
  """The printed row whose draft has the role of ours, if there is one."""
  key = (_TASKS.get(task, ""), _DRAFTS.get(draft, ""), temperature)
  return _walltimes().get(key)

"""The papers' printed figures, shipped with the package as CSV."""

import csv
import functools
import importlib.resources
from typing import NamedTuple

# Our roles and tasks under the names of Leviathan et al. 2023.
_TASKS = {
    **dict.fromkeys(("ende", "wmt14_ende"), "EnDe"),
    **dict.fromkeys(("summ", "cnn_dailymail"), "CNNDM"),
}
_GPT_TASKS = ("english", "lm1b")
_TARGETS = {
    **{task: f"T5-XXL {name}" for task, name in _TASKS.items()},
    **dict.fromkeys(_GPT_TASKS, "GPT-like 97M (lm1b)"),
}
_DRAFTS = {
    "small": "T5-small",
    "base": "T5-base",
    "large": "T5-large",
    "unigram": "unigram",
    "bigram": "bigram",
}
_GPT_DRAFT = "GPT-like 6M"


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


def paper_task(task: str) -> str | None:
  """The paper's name of a task that has its role."""
  return _TASKS.get(task)


def paper_target(task: str) -> str | None:
  """The paper's name of the target that a task is decoded with (Table 3)."""
  return _TARGETS.get(task)


def paper_draft(task: str, draft: str) -> str | None:
  """The paper's name of the draft in the role of ours."""
  if task in _GPT_TASKS and draft == "small":
    return _GPT_DRAFT
  return _DRAFTS.get(draft)


def paper_row(task: str, draft: str, temperature: float) -> PaperRow | None:
  """The printed row whose draft has the role of ours, if there is one."""
  key = (_TASKS.get(task, ""), _DRAFTS.get(draft, ""), temperature)
  return _walltimes().get(key)


def paper_alpha(
    task: str, draft: str, temperature: float, lenience: float = 1.0
) -> float | None:
  """The acceptance rate of Table 3 or, for lenience < 1, of Table 5.

  None where the papers print none for a draft of this role.
  """
  name = paper_draft(task, draft)
  if temperature not in (0, 1):
    return None
  if lenience == 1:
    column = f"alpha_t{temperature:g}"
    rows = [
        row
        for row in table("leviathan_table3")
        if row["target"] == _TARGETS.get(task)
    ]
  else:
    sampling = "standard" if temperature else "argmax"
    column = f"lenience_{lenience:g}"
    rows = [
        row
        for row in table("leviathan_table5_lenience")
        if row["sampling"] == sampling and _TASKS.get(task) == "EnDe"
    ]
  found = {row["draft"]: row.get(column) for row in rows}.get(name)
  return float(found) if found else None


def paper_lenience_speed(
    task: str, draft: str, temperature: float, lenience: float
) -> float | None:
  """The speed that A.5 states for a draft of this role, if it does."""
  if _TASKS.get(task) != "EnDe" or temperature not in (0, 1):
    return None
  key = ("standard" if temperature else "argmax", _DRAFTS.get(draft))
  found = {
      float(row["lenience"]): float(row["speed"])
      for row in table("leviathan_lenience_speed")
      if (row["sampling"], row["draft"]) == key
  }
  return found.get(lenience)

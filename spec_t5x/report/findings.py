"""The findings page: which claims of the papers hold here, judged by numbers.

A claim is judged from the rows of one run at a time, and the words follow the
verdict: a sentence is chosen by the measured value, never the other way round.
What a measured range leaves open, a verdict leaves open too: a value counts as
above another where its whole range is.
"""

import functools
import pathlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from spec_t5x.experiments.cells import CellStore
from spec_t5x.report import (
    lenience_tables,
    position_tables,
    prediction_tables,
    reprojection_tables,
    tables,
)
from spec_t5x.report.tables import Row

HOLDS, PARTLY, FAILS = "holds", "holds in part", "does not hold"
OPEN = "not decided"

Range = tuple[float, float]


class Judgement(NamedTuple):
  """What one run says about a claim.

  Attributes:
    verdict: `HOLDS`, `PARTLY`, `FAILS` or `OPEN`.
    text: why, with the numbers.
  """

  verdict: str
  text: str


def judge(passed: int, total: int, text: str, undecided: int = 0) -> Judgement:
  """Judges by how many of some cases bear a claim out.

  Args:
    passed: cases that do.
    total: all cases.
    text: why.
    undecided: cases that neither do nor do not, by their ranges.
  """
  verdict = PARTLY
  if passed == total:
    verdict = HOLDS
  elif passed == 0:
    verdict = OPEN if undecided == total else FAILS
  return Judgement(verdict, text)


def judge_outcomes(outcomes: Sequence[bool | None], text: str) -> Judgement:
  """Judges by what `above` says of each case."""
  undecided = outcomes.count(None)
  return judge(outcomes.count(True), len(outcomes), text, undecided)


def above(first: Range, second: Range) -> bool | None:
  """Whether all of a range (low, high) lies above another one.

  Returns:
    False if all of it lies below, None if they overlap.
  """
  if first[0] > second[1]:
    return True
  return False if first[1] < second[0] else None


class Evidence:
  """The rows of one run, read when asked for."""

  def __init__(self, run: pathlib.Path):
    """Takes the run's directory."""
    self.run = run

  @functools.cached_property
  def walltime(self) -> list[Row]:
    """Rows of `tables.walltime_rows`."""
    return tables.walltime_rows(self.run)

  @functools.cached_property
  def alpha(self) -> list[Row]:
    """Rows of `tables.alpha_rows`."""
    return tables.alpha_rows(self.run)

  @functools.cached_property
  def lenience(self) -> list[Row]:
    """Rows of `lenience_tables`."""
    return lenience_tables.rows(self.run)

  @functools.cached_property
  def positions(self) -> list[Row]:
    """Rows of `position_tables`."""
    return position_tables.rows(self.run)

  @functools.cached_property
  def predictions(self) -> list[Row]:
    """Rows of `prediction_tables`."""
    return prediction_tables.rows(self.run)

  @functools.cached_property
  def errors(self) -> dict[str, Row]:
    """Rows of `prediction_tables.errors` by form."""
    rows = prediction_tables.errors(self.predictions)
    return {row["form"]: row for row in rows}

  @functools.cached_property
  def reprojection(self) -> list[Row]:
    """Rows of `reprojection_tables`."""
    return reprojection_tables.rows(self.run)

  @functools.cached_property
  def work(self) -> list[Row]:
    """Rows of `reprojection_tables.work`."""
    return reprojection_tables.work(self.run)

  @functools.cached_property
  def programs(self) -> dict[str, Row]:
    """Rows of `reprojection_tables.programs` by projection."""
    rows = reprojection_tables.programs(self.run)
    return {row["projection"]: row for row in rows}

  @functools.cached_property
  def qualities(self) -> list[Row]:
    """What the cells of texts decoded with a draft are about, lenience 1."""
    store = CellStore(self.run / "cells")
    found = [store.read(name)[0] for name in store.names("quality-")]
    return [about for about in found if about["lenience"] == 1]

  @functools.cached_property
  def greedy_texts(self) -> tuple[int, int]:
    """Texts at temperature 0: those the same both ways, and all."""
    store = CellStore(self.run / "cells")
    greedy = [about for about in self.qualities if about["temperature"] == 0]
    same = sum(about["identical"] for about in greedy)
    total = sum(about["texts"] for about in greedy)
    for name in store.names("walltime-"):
      about, rows = store.read(name)
      if about["temperature"] == 0:
        total += len(rows)
        same += sum(
            row["plain"]["prediction"] == row["speculative"]["prediction"]
            for row in rows
        )
    return same, total


class Claim(NamedTuple):
  """A claim of a paper.

  Attributes:
    title: the claim.
    source: where it is made.
    judge: what a run says; None if it measured nothing to the point.
    figure: name of the figure of a run that shows it, or empty.
    tables: names of the tables that hold the numbers.
  """

  title: str
  source: str
  judge: Callable[[Evidence], Judgement | None]
  figure: str = ""
  tables: tuple[str, ...] = ()


class Finding(NamedTuple):
  """A claim with what all runs say.

  Attributes:
    claim: the claim.
    judgements: run (as '<experiment>/<run>') to its judgement; the run is
      empty where theory alone is judged.
  """

  claim: Claim
  judgements: dict[str, Judgement]

  @property
  def verdict(self) -> str:
    """The one verdict of all runs, or that they differ."""
    verdicts = {judgement.verdict for judgement in self.judgements.values()}
    return verdicts.pop() if len(verdicts) == 1 else PARTLY


def findings(
    claims: Sequence[Claim], runs: Sequence[pathlib.Path]
) -> list[Finding]:
  """Judges claims; those that no run says anything about are left out."""
  evidence = {tables.run_name(run): Evidence(run) for run in runs}
  found = []
  for claim in claims:
    judgements = {
        name: judgement
        for name, of_run in evidence.items()
        if (judgement := claim.judge(of_run))
    }
    if judgements:
      found.append(Finding(claim, judgements))
  return found


def unmeasured(
    claims: Sequence[Claim], found: Sequence[Finding]
) -> list[Claim]:
  """The claims that nothing was found about."""
  known = [finding.claim for finding in found]
  return [claim for claim in claims if claim not in known]


def to_markdown(
    results: pathlib.Path,
    theory: Finding,
    found: Sequence[Finding],
    missing: Sequence[Claim],
) -> str:
  """The findings page.

  Args:
    results: directory that the page will lie in, its tables written.
    theory: what holds without any run.
    found: what runs say.
    missing: claims that no run measured.
  """
  parts = [
      "# Findings\n\nMade by `python scripts/report.py` from the counts and"
      " seconds in the cells of each run. Every number below is filled in from"
      " them, and the words are chosen by it. Speeds and costs are of the"
      " machine that the run names.\n"
  ]
  for number, finding in enumerate([theory, *found], 1):
    parts.append(_section(results, number, finding))
  if missing:
    titles = "".join(f"- {claim.title}\n" for claim in missing)
    parts.append(f"## Not measured yet\n\n{titles}")
  return "\n".join(parts)


def _section(results: pathlib.Path, number: int, finding: Finding) -> str:
  claim = finding.claim
  lines = [
      f"## {number}. {claim.title}\n\n**{finding.verdict.capitalize()}.**"
      f" Source: {claim.source}.\n"
  ]
  for run, judgement in finding.judgements.items():
    prefix = f"`{run}`: " if run else ""
    lines.append(f"{prefix}{judgement.text}\n")
    if (results / run / "figures" / f"{claim.figure}.svg").exists():
      lines.append(f"![{claim.title}]({run}/figures/{claim.figure}.svg)\n")
  there = [name for name in claim.tables if (results / name).exists()]
  if there:
    links = ", ".join(f"[{name}]({name})" for name in there)
    lines.append(f"Numbers: {links}.\n")
  return "\n".join(lines)

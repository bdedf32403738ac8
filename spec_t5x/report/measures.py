"""From raw counts and seconds of a sweep to the quantities of the paper."""

import math
import pathlib
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spec_t5x.decoding_types import Counts
from spec_t5x.experiments import cells
from spec_t5x.experiments.cells import CellStore
from spec_t5x.statistics import DecodeStatistics


class Interval(NamedTuple):
  """An estimate with its range."""

  value: float
  low: float
  high: float


class PositionMean(NamedTuple):
  """A mean over positions of texts that the target generated.

  Attributes:
    estimate: the mean, with a 95% interval over texts.
    tokens: positions averaged over.
  """

  estimate: Interval
  tokens: int


def alpha(
    store: CellStore, draft: str, temperature: float, lenience: float = 1.0
) -> PositionMean:
  """Corollary 3.6 over texts of the target (paper 1, section 4.2)."""
  _, rows = store.read(cells.alpha_name(draft, temperature, lenience))
  sums = np.array([sum(row["overlap"]) for row in rows])
  return _mean(sums, [row["tokens"] for row in rows])


def distance(
    store: CellStore, draft: str, temperature: float, lenience: float
) -> PositionMean:
  """Distance from the target's law that a lenience below 1 makes (A.5).

  The total variation between the law of a token and the target's, wherever
  that token is tested: what lenience accepts above the exact test,
  sum(min(p / l, q)) - sum(min(p, q)), see `verification.verify_tokens`. At
  temperature 0 it is the share of tokens that are not the target's.
  """
  sums = []
  for value in (lenience, 1.0):
    _, rows = store.read(cells.alpha_name(draft, temperature, value))
    sums.append(np.array([sum(row["overlap"]) for row in rows]))
  return _mean(sums[0] - sums[1], [row["tokens"] for row in rows])


def _mean(sums: np.ndarray, tokens: Sequence[int]) -> PositionMean:
  """Mean over positions of the sums of texts, with a 95% interval.

  Positions of one text are alike, so the interval is that of a ratio of sums
  over texts, not over positions.
  """
  tokens = np.array(tokens)
  mean, half = _ratio(sums, tokens)
  # Both are probabilities; round-off may lift a sum above 1.
  clip = lambda x: float(min(1.0, max(0.0, x)))
  return PositionMean(
      Interval(clip(mean), clip(mean - half), clip(mean + half)),
      int(tokens.sum()),
  )


def _ratio(tops: np.ndarray, bottoms: np.ndarray) -> tuple[float, float]:
  """A ratio of sums over texts, and half its 95% interval (delta method)."""
  ratio = tops.sum() / bottoms.sum()
  residuals = tops - ratio * bottoms
  error = math.sqrt((residuals**2).sum()) / bottoms.sum()
  return ratio, statistics.NormalDist().inv_cdf(0.975) * error


class StepCosts(NamedTuple):
  """Medians of seconds per model call.

  Attributes:
    draft: by tokens per call (1, 2).
    target: by tokens per call (1, gamma + 1).
  """

  draft: dict[int, float]
  target: dict[int, float]

  @property
  def cost_coefficient(self) -> float:
    """c: one draft step over one target step (definition 3.7)."""
    return self.draft[1] / self.target[1]

  def verify_ratio(self, gamma: int) -> float:
    """v(gamma): a target call of gamma + 1 tokens over one of 1 token."""
    return self.target[gamma + 1] / self.target[1]


def step_costs(store: CellStore, draft: str) -> StepCosts:
  """Reads a cost cell."""
  _, rows = store.read(cells.cost_name(draft))
  medians = {"draft": {}, "target": {}}
  for row in rows:
    medians[row["model"]][row["block"]] = statistics.median(row["seconds"])
  return StepCosts(**medians)


class Quality(NamedTuple):
  """Scores of the texts that alpha is averaged over; None if unknown.

  Attributes:
    metric: its name.
    target_quality: of the target's own texts.
    speculative_quality: of the same texts, decoded with the draft.
    difference: by how much the latter is the greater.
    difference_low: lower end of its 95% interval.
    difference_high: upper end.
  """

  metric: str | None
  target_quality: float | None
  speculative_quality: float | None
  difference: float | None
  difference_low: float | None
  difference_high: float | None


def quality(
    store: CellStore, draft: str, temperature: float, lenience: float = 1.0
) -> Quality:
  """Reads the cells of the texts, as far as they are finished."""
  plain, drafted = (
      store.read(name)[0] if name in store else {}
      for name in (
          cells.outputs_name(temperature),
          cells.quality_name(draft, temperature, lenience),
      )
  )
  return Quality(
      drafted.get("metric"),
      plain.get("quality"),
      drafted.get("quality"),
      *(drafted.get(name) for name in Quality._fields[3:]),
  )


class Walltime(NamedTuple):
  """One walltime cell.

  Attributes:
    about: what was measured.
    speed: plain over speculative seconds, encoders included, see `_speed`.
    decode_speed: the same without the encoders.
    counts: statistics of speculative decoding, pooled.
    tokens: tokens timed in one pass.
    target_milliseconds: plain decoding, per token, encoders included.
  """

  about: dict[str, Any]
  speed: Interval
  decode_speed: Interval
  counts: DecodeStatistics
  tokens: int
  target_milliseconds: float


def walltime(store: CellStore, name: str) -> Walltime:
  """Reads a walltime cell; ratios are of sums over texts, pass by pass."""
  about, rows = store.read(name)
  seconds = {
      (which, part): np.array([row[which][f"{part}_seconds"] for row in rows])
      for which in ("plain", "speculative")
      for part in ("encode", "decode")
  }
  total = {
      which: seconds[which, "encode"] + seconds[which, "decode"]
      for which in ("plain", "speculative")
  }
  counts = [row["speculative"]["counts"] for row in rows]
  tokens = sum(row["tokens"] for row in rows)
  return Walltime(
      about=about,
      speed=_speed(total["plain"], total["speculative"]),
      decode_speed=_speed(
          seconds["plain", "decode"], seconds["speculative", "decode"]
      ),
      counts=DecodeStatistics.pool(
          DecodeStatistics.from_row(*Counts(**row)) for row in counts
      ),
      tokens=tokens,
      target_milliseconds=1e3
      * float(np.median(total["plain"].sum(0)))
      / tokens,
  )


def _speed(plain: np.ndarray, speculative: np.ndarray) -> Interval:
  """How many times as fast the texts are decoded speculatively.

  Args:
    plain: [texts, passes] seconds.
    speculative: the same.

  Returns:
    Median over passes of the ratios of sums over texts. Its range is that of
    the passes, which tells of the machine, and the 95% interval over texts,
    which tells of their choice, whichever reaches further.
  """
  passes = plain.sum(axis=0) / speculative.sum(axis=0)
  _, half = _ratio(np.median(plain, axis=1), np.median(speculative, axis=1))
  middle = float(np.median(passes))
  return Interval(
      middle,
      float(min(passes.min(), middle - half)),
      float(max(passes.max(), middle + half)),
  )


def runs(results: pathlib.Path) -> list[pathlib.Path]:
  """Directories of all runs of all experiments, sorted."""
  return sorted(path.parent for path in results.glob("*/*/provenance.json"))

"""What decoding measured, as counts; ratios are taken of pooled counts only.

A mean of per-text ratios weighs a short text like a long one, and is off by
tens of percent when lengths differ; counts add up.
"""

import dataclasses
import math
from collections.abc import Iterable
from statistics import NormalDist
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class DecodeStatistics:
  """Counts over any number of texts decoded with one gamma.

  What lies past the last token of a text (EOS, or the length limit) counts
  nowhere, and drafted tokens that a limit left untested are no rejections.

  Attributes:
    accept_counts: iterations by their number of accepted tokens, 0 to gamma.
    position_tested: drafted tokens that were tested, by place in the block.
      A token is tested if all tokens drafted before it were accepted.
    position_accepted: drafted tokens that were accepted, by place.
    position_overlap: sums over the tested tokens of sum_x min(p(x), q(x)),
      by place.
    iterations: rounds of draft and verification, each one target call.
    emitted: tokens of the texts, EOS included, prompts not.
  """

  accept_counts: tuple[int, ...]
  position_tested: tuple[int, ...]
  position_accepted: tuple[int, ...]
  position_overlap: tuple[float, ...]
  iterations: int
  emitted: int

  def __post_init__(self):
    """Checks that the counts can be counts of one run."""
    gamma = self.gamma
    for name in ("position_tested", "position_accepted", "position_overlap"):
      length = len(getattr(self, name))
      if length != gamma:
        raise ValueError(
            f"`{name}` must have gamma = {gamma} entries, one less than"
            f" `accept_counts`. Got {length}."
        )
    values = [self.iterations, self.emitted, *self.accept_counts]
    if min(*values, *self.position_accepted, *self.position_overlap) < 0:
      raise ValueError(f"Counts must not be negative. Got {self}.")
    for accepted, tested in zip(
        self.position_accepted, self.position_tested, strict=True
    ):
      if accepted > tested:
        raise ValueError(
            "`position_accepted` must not exceed `position_tested`. Got"
            f" {self.position_accepted} of {self.position_tested}."
        )

  @classmethod
  def from_row(
      cls,
      accept_counts: np.ndarray,
      position_tested: np.ndarray,
      position_accepted: np.ndarray,
      position_overlap: np.ndarray,
      iterations: int,
      emitted: int,
  ) -> "DecodeStatistics":
    """Takes arrays, in the order of one row of the decoding loop's `Counts`.

    Args:
      accept_counts: [gamma + 1].
      position_tested: [gamma].
      position_accepted: [gamma].
      position_overlap: [gamma].
      iterations: scalar.
      emitted: scalar.
    """
    return cls(
        accept_counts=tuple(map(int, accept_counts)),
        position_tested=tuple(map(int, position_tested)),
        position_accepted=tuple(map(int, position_accepted)),
        position_overlap=tuple(map(float, position_overlap)),
        iterations=int(iterations),
        emitted=int(emitted),
    )

  @classmethod
  def pool(cls, parts: Iterable["DecodeStatistics"]) -> "DecodeStatistics":
    """Adds up counts.

    Raises:
      ValueError: if there is nothing to add, or gammas differ.
    """
    parts = list(parts)
    gammas = sorted({part.gamma for part in parts})
    if len(gammas) != 1:
      raise ValueError(f"Pooled statistics must be of one gamma. Got {gammas}.")
    columns = zip(*(dataclasses.astuple(part) for part in parts), strict=True)
    return cls.from_row(*(np.sum(column, axis=0) for column in columns))

  def __add__(self, other: "DecodeStatistics") -> "DecodeStatistics":
    """Adds up the counts of two runs of one gamma."""
    return self.pool([self, other])

  @property
  def gamma(self) -> int:
    """Tokens drafted in one iteration."""
    return len(self.accept_counts) - 1

  @property
  def tested(self) -> int:
    """Drafted tokens that were tested."""
    return sum(self.position_tested)

  @property
  def accepted(self) -> int:
    """Drafted tokens that were accepted."""
    return sum(self.position_accepted)

  @property
  def overlap_sum(self) -> float:
    """Sum of sum_x min(p(x), q(x)) over the tested tokens."""
    return sum(self.position_overlap)

  @property
  def target_calls(self) -> int:
    """Calls of the target after the prompt: one per iteration."""
    return self.iterations

  @property
  def alpha_hat(self) -> float:
    """Acceptance rate accepted / tested, in [0, 1]; NaN if none was tested.

    An estimate of alpha for token verification only: block verification tests
    differently, and `alpha_exact` is the estimate there.
    """
    return _divide(self.accepted, self.tested)

  @property
  def alpha_exact(self) -> float:
    """Mean of sum_x min(p(x), q(x)) over the tested positions; NaN if none.

    The expectation of `alpha_hat` given the texts (Leviathan et al. 2023,
    corollary 3.6), without the noise of the acceptance tests.
    """
    return _divide(self.overlap_sum, self.tested)

  @property
  def block_efficiency(self) -> float:
    """Tokens per target call, at most gamma + 1; NaN without calls."""
    return _divide(self.emitted, self.target_calls)

  @property
  def position_acceptance(self) -> tuple[float, ...]:
    """`alpha_hat` by place in the block; NaN where none was tested."""
    return tuple(map(_divide, self.position_accepted, self.position_tested))

  def alpha_interval(self, confidence: float = 0.95) -> tuple[float, float]:
    """Returns Wilson's interval for alpha; NaNs if no token was tested.

    It takes the tests as independent. Within a text they are not quite, so
    that the interval is somewhat too narrow.

    Args:
      confidence: in (0, 1).

    Raises:
      ValueError: if `confidence` is out of range.
    """
    return wilson_interval(self.accepted, self.tested, confidence)

  def to_dict(self) -> dict[str, Any]:
    """Returns the counts for JSON; `from_row(**d)` restores them."""
    return dataclasses.asdict(self)


def wilson_interval(
    successes: int, trials: int, confidence: float = 0.95
) -> tuple[float, float]:
  """Returns Wilson's interval for a rate; NaNs without trials.

  Args:
    successes: at most as many as trials.
    trials: taken as independent and alike.
    confidence: in (0, 1).

  Raises:
    ValueError: if `confidence` is out of range.
  """
  if not 0 < confidence < 1:
    raise ValueError(f"`confidence` must be in (0, 1). Got {confidence}.")
  if not trials:
    return math.nan, math.nan
  z2 = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
  rate = successes / trials
  centre = rate + z2 / (2 * trials)
  spread = math.sqrt(z2 * (rate * (1 - rate) + z2 / (4 * trials)) / trials)
  scale = 1 + z2 / trials
  low, high = (centre - spread) / scale, (centre + spread) / scale
  return max(0.0, low), min(1.0, high)


def _divide(numerator: float, denominator: float) -> float:
  return numerator / denominator if denominator else math.nan

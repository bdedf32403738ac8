"""Training data of several tasks, for one model of them all."""

import collections
import dataclasses
import itertools
import math
import os
from collections.abc import Iterator, Sequence

from spec_t5x import train_data
from spec_t5x.batching import BUCKETS, Example
from spec_t5x.train_data import Batch, Buckets, Data
from spec_t5x.vocabulary import SHIPPED_PATH


@dataclasses.dataclass(frozen=True)
class Mixture:
  """Several `Data` by turns, for a model of several tasks; implements `Data`.

  Which part gives batch number n depends on the rates and n alone, and any
  stretch of batches has the parts in nearly the proportion of their rates.

  Attributes:
    parts: what is mixed.
    rates: batches of each part, relative to the others.
  """

  parts: Sequence[Data]
  rates: Sequence[float]

  def __post_init__(self):
    """Checks the rates."""
    if len(self.rates) != len(self.parts) or not self.parts:
      raise ValueError(
          "`rates` must have one rate for each of `parts`, of which there is"
          f" at least one. Got {len(self.rates)} rates and"
          f" {len(self.parts)} parts."
      )
    if not all(0 < rate < math.inf for rate in self.rates):
      raise ValueError(f"`rates` must be positive. Got {self.rates}.")

  @property
  def validation(self) -> Sequence[Example]:
    """See `Data`; those of the first part first."""
    return [pair for part in self.parts for pair in part.validation]

  def about(self) -> str:
    """See `Data`; a line for each part."""
    return "\n".join(part.about() for part in self.parts)

  def train_batches(self, start: int) -> Iterator[Batch]:
    """See `Data`."""
    turns = self._turns()
    given = collections.Counter(itertools.islice(turns, start))
    streams = [
        part.train_batches(given[number])
        for number, part in enumerate(self.parts)
    ]
    return (next(streams[number]) for number in turns)

  def validation_batches(self) -> Iterator[Batch]:
    """See `Data`."""
    return itertools.chain.from_iterable(
        part.validation_batches() for part in self.parts
    )

  def _turns(self) -> Iterator[int]:
    """Yields the part of each batch: the one furthest behind its rate."""
    given = [0] * len(self.parts)
    while True:
      number = min(
          range(len(given)), key=lambda i: (given[i] + 1) / self.rates[i]
      )
      given[number] += 1
      yield number


def mixture(
    tasks: Sequence[str],
    rates: Sequence[float],
    vocabulary: str | os.PathLike[str] = SHIPPED_PATH,
    tokens_per_batch: int = 2048,
    seed: int = 0,
    buckets: Buckets = BUCKETS,
) -> Mixture:
  """Mixes corpora of the package; see `train_data.shipped` and `Mixture`.

  Raises:
    FileNotFoundError: there is no vocabulary.
    ValueError: unknown task, or rates that do not fit.
  """
  parts = [
      train_data.shipped(task, vocabulary, tokens_per_batch, seed, buckets)
      for task in tasks
  ]
  return Mixture(parts, rates)

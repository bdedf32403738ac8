"""Training batches of few static shapes and little padding.

XLA compiles one program for each shape, so examples are sorted into a small
fixed set of (source length, target length) buckets. A batch comes from one
bucket and has the number of rows that fills the token budget: short examples
come in wide batches, long ones in narrow batches, at about equal cost.

The order is a function of (seed, epoch) alone: a run that stopped after
`start` batches of an epoch carries on with the very batches it would have
seen. numpy only.
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from spec_t5x.types import EOS_ID, PAD_ID

__all__ = ["BUCKETS", "BatchPlan", "bucket_batches", "stream_batches"]

# (source length, target length), both with EOS: the twelve shapes that leave
# least padding (a fifth) on the shipped corpora. Translations are about as
# long as their sources, summaries are short.
BUCKETS = (
    (16, 16),
    (24, 24),
    (32, 32),
    (56, 16),
    (40, 40),
    (80, 16),
    (96, 24),
    (56, 64),
    (128, 16),
    (160, 24),
    (128, 96),
    (256, 24),
)

Example = tuple[Sequence[int], Sequence[int]]


@dataclasses.dataclass(frozen=True)
class BatchPlan:
  """Which examples share a batch shape; the same in every epoch.

  Attributes:
    buckets: (source length, target length) of each bucket.
    members: For each bucket, indices into the examples.
    batch_sizes: For each bucket, rows in a batch.
    num_dropped: Examples whose target is longer than every bucket's.
    num_truncated: Examples whose source was cut to its bucket's length.
    num_tokens: Tokens in the kept examples, both sides, EOS counted.
  """

  buckets: tuple[tuple[int, int], ...]
  members: tuple[tuple[int, ...], ...]
  batch_sizes: tuple[int, ...]
  num_dropped: int
  num_truncated: int
  num_tokens: int

  @classmethod
  def make(
      cls,
      examples: Sequence[Example],
      tokens_per_batch: int,
      buckets: Sequence[tuple[int, int]] = BUCKETS,
  ) -> "BatchPlan":
    """Puts each example into the smallest bucket that holds it.

    A source longer than every bucket is truncated to the longest source
    length that still holds its target; a target too long is dropped, as a
    text cut short would teach the model to end where the text does not.

    Args:
      examples: (source ids, target ids), both without EOS.
      tokens_per_batch: Upper bound of source and target positions in a batch,
        padding included.
      buckets: (source length, target length), both with EOS.

    Returns:
      The plan.

    Raises:
      ValueError: There are no examples, or a bucket is empty or larger than
        `tokens_per_batch`.
    """
    if not examples:
      raise ValueError("`examples` must not be empty.")
    _check_buckets(tokens_per_batch, buckets)
    buckets = tuple(sorted(buckets, key=sum))
    members = [[] for _ in buckets]
    num_dropped = num_truncated = num_tokens = 0
    for index, (source, target) in enumerate(examples):
      bucket = _choose(len(source) + 1, len(target) + 1, buckets)
      if bucket is None:
        num_dropped += 1
        continue
      source_length = min(len(source) + 1, buckets[bucket][0])
      num_truncated += source_length <= len(source)
      num_tokens += source_length + len(target) + 1
      members[bucket].append(index)
    return cls(
        buckets,
        tuple(map(tuple, members)),
        tuple(tokens_per_batch // sum(bucket) for bucket in buckets),
        num_dropped,
        num_truncated,
        num_tokens,
    )

  @property
  def shapes(self) -> tuple[tuple[int, int, int], ...]:
    """(rows, source length, target length) of every batch that can come."""
    return tuple(
        (rows, *bucket)
        for rows, bucket, members in zip(
            self.batch_sizes, self.buckets, self.members, strict=True
        )
        if members
    )

  @property
  def num_batches(self) -> int:
    """Batches in an epoch."""
    return sum(self._batches_per_bucket())

  @property
  def padding_fraction(self) -> float:
    """Share of all positions of an epoch that hold padding."""
    num_positions = sum(
        batches * rows * sum(bucket)
        for batches, rows, bucket in zip(
            self._batches_per_bucket(),
            self.batch_sizes,
            self.buckets,
            strict=True,
        )
    )
    return 1 - self.num_tokens / num_positions if num_positions else 0.0

  def order(self, seed: int, epoch: int) -> list[tuple[int, np.ndarray]]:
    """Batches of one epoch as (bucket, indices into the examples)."""
    rng = np.random.default_rng((seed, epoch))
    batches = []
    for bucket, members in enumerate(self.members):
      shuffled = rng.permutation(np.array(members, dtype=np.int64))
      rows = self.batch_sizes[bucket]
      batches += [
          (bucket, shuffled[first : first + rows])
          for first in range(0, len(shuffled), rows)
      ]
    return [batches[i] for i in rng.permutation(len(batches))]

  def _batches_per_bucket(self) -> list[int]:
    return [
        math.ceil(len(members) / rows)
        for members, rows in zip(self.members, self.batch_sizes, strict=True)
    ]


def bucket_batches(
    examples: Sequence[Example],
    tokens_per_batch: int,
    buckets: Sequence[tuple[int, int]] = BUCKETS,
    *,
    seed: int = 0,
    epoch: int = 0,
    start: int = 0,
) -> Iterator[dict[str, np.ndarray]]:
  """Yields one epoch's batches; each kept example is in exactly one.

  The last batch of a bucket is filled up with rows of padding, so the shapes
  are those of `BatchPlan.shapes` and no others.

  Args:
    examples: (source ids, target ids), both without EOS.
    tokens_per_batch: Upper bound of source and target positions in a batch.
    buckets: (source length, target length), both with EOS.
    seed: With `epoch`, fixes the order.
    epoch: Number of the pass over the data.
    start: Batches of this epoch to pass over, to resume a run.

  Returns:
    An iterator over dicts of int32 arrays: `encoder_input_tokens`
    [batch, source length], `decoder_target_tokens` [batch, target length],
    both ending in EOS, and `decoder_input_tokens`, the targets shifted right
    by one behind BOS (= PAD = 0).

  Raises:
    ValueError: As `BatchPlan.make`, or `start` is not within the epoch.
  """
  plan = BatchPlan.make(examples, tokens_per_batch, buckets)
  if not 0 <= start <= plan.num_batches:
    raise ValueError(
        f"`start` must be between 0 and {plan.num_batches}. Got {start}."
    )
  return (
      _collate(
          [examples[i] for i in indices],
          plan.batch_sizes[bucket],
          *plan.buckets[bucket],
      )
      for bucket, indices in plan.order(seed, epoch)[start:]
  )


def stream_batches(
    examples: Iterable[Example],
    tokens_per_batch: int,
    buckets: Sequence[tuple[int, int]] = BUCKETS,
) -> Iterator[dict[str, np.ndarray]]:
  """Yields batches of a stream, each as soon as its bucket is full.

  What is left in the buckets when the stream ends is filled up with rows of
  padding. Long examples are treated as by `BatchPlan.make`.

  Args:
    examples: (source ids, target ids), both without EOS.
    tokens_per_batch: Upper bound of source and target positions in a batch.
    buckets: (source length, target length), both with EOS.

  Yields:
    Batches as those of `bucket_batches`.

  Raises:
    ValueError: A bucket is empty or larger than `tokens_per_batch`.
  """
  _check_buckets(tokens_per_batch, buckets)
  buckets = sorted(buckets, key=sum)
  waiting = [[] for _ in buckets]
  collate = lambda number: _collate(
      waiting[number],
      tokens_per_batch // sum(buckets[number]),
      *buckets[number],
  )
  for source, target in examples:
    number = _choose(len(source) + 1, len(target) + 1, buckets)
    if number is None:
      continue
    waiting[number].append((source, target))
    if len(waiting[number]) == tokens_per_batch // sum(buckets[number]):
      yield collate(number)
      waiting[number] = []
  yield from (collate(number) for number, rest in enumerate(waiting) if rest)


def _check_buckets(
    tokens_per_batch: int, buckets: Sequence[tuple[int, int]]
) -> None:
  if not buckets:
    raise ValueError("`buckets` must not be empty.")
  if min(map(min, buckets)) < 1:
    raise ValueError(f"`buckets` must hold lengths >= 1. Got {buckets}.")
  largest = max(map(sum, buckets))
  if tokens_per_batch < largest:
    raise ValueError(
        "`tokens_per_batch` must hold at least one row of the largest bucket, "
        f"{largest}. Got {tokens_per_batch}."
    )


def _choose(
    source_length: int, target_length: int, buckets: Sequence[tuple[int, int]]
) -> int | None:
  """Index of the cheapest bucket that fits, the longest if the source cannot.

  `buckets` rise by total length.
  """
  fits_target = [i for i, b in enumerate(buckets) if b[1] >= target_length]
  for i in fits_target:
    if buckets[i][0] >= source_length:
      return i
  return max(fits_target, key=lambda i: buckets[i][0], default=None)


def _collate(
    examples: Sequence[Example],
    rows: int,
    source_length: int,
    target_length: int,
) -> dict[str, np.ndarray]:
  sources = np.full((rows, source_length), PAD_ID, np.int32)
  targets = np.full((rows, target_length), PAD_ID, np.int32)
  for row, (source, target) in enumerate(examples):
    source = [*source[: source_length - 1], EOS_ID]
    sources[row, : len(source)] = source
    targets[row, : len(target) + 1] = [*target, EOS_ID]
  inputs = np.full_like(targets, PAD_ID)
  inputs[:, 1:] = targets[:, :-1]
  return {
      "encoder_input_tokens": sources,
      "decoder_target_tokens": targets,
      "decoder_input_tokens": inputs,
  }

"""Training data: shipped corpora in memory, any SeqIO task as a stream.

Both give batches by number: a run that stopped after `start` steps asks for
the batches from there on and gets the very ones that it would have seen.
"""

import dataclasses
import functools
import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int

from spec_t5x import batching, corpora
from spec_t5x.batching import BUCKETS, Example
from spec_t5x.types import EOS_ID
from spec_t5x.vocabulary import SHIPPED_PATH, Vocabulary

Batch = dict[str, Int[np.ndarray, "batch length"]]
Buckets = Sequence[tuple[int, int]]

# Nothing is kept for the backward pass of a held-out batch.
_VALIDATION_FACTOR = 4


@runtime_checkable
class Data(Protocol):
  """What `train.fit` trains on."""

  @property
  def validation(self) -> Sequence[Example]:
    """Held-out (source, target) pairs, without EOS."""
    ...

  def about(self) -> str:
    """A line for whoever trains: how much there is, and what is left out."""
    ...

  def train_batches(self, start: int) -> Iterator[Batch]:
    """Training batches without end, from number `start` on."""
    ...

  def validation_batches(self) -> Iterator[Batch]:
    """All held-out examples, once."""
    ...


def _validation_batches(data) -> Iterator[Batch]:
  return batching.bucket_batches(
      data.validation, _VALIDATION_FACTOR * data.tokens_per_batch, data.buckets
  )


@dataclasses.dataclass(frozen=True)
class Examples:
  """Pairs of token ids in memory, in a fixed order; implements `Data`.

  Attributes:
    train: (source, target) pairs, without EOS.
    validation: held-out pairs.
    tokens_per_batch: positions in a batch, both sides, padding included.
    seed: of the order, which is another in every epoch.
    buckets: (source length, target length) of the batch shapes.
  """

  train: Sequence[Example]
  validation: Sequence[Example]
  tokens_per_batch: int = 2048
  seed: int = 0
  buckets: Buckets = BUCKETS

  def about(self) -> str:
    """See `Data`."""
    plan = self._plan
    return (
        f"{len(self.train):,} texts, {plan.num_batches:,} batches an epoch,"
        f" {plan.padding_fraction:.0%} padding; too long for the buckets: texts"
        f" left out {plan.num_dropped:,}, sources cut {plan.num_truncated:,}."
    )

  @functools.cached_property
  def _plan(self) -> batching.BatchPlan:
    return batching.BatchPlan.make(
        self.train, self.tokens_per_batch, self.buckets
    )

  def train_batches(self, start: int) -> Iterator[Batch]:
    """See `Data`; batches of one epoch after the other."""
    plan = self._plan
    first_epoch, start = divmod(start, plan.num_batches)
    for epoch in itertools.count(first_epoch):
      yield from batching.bucket_batches(
          self.train,
          self.tokens_per_batch,
          self.buckets,
          seed=self.seed,
          epoch=epoch,
          start=start,
      )
      start = 0

  def validation_batches(self) -> Iterator[Batch]:
    """See `Data`."""
    return _validation_batches(self)


def shipped(
    task: str,
    vocabulary: str | os.PathLike[str] = SHIPPED_PATH,
    tokens_per_batch: int = 2048,
    seed: int = 0,
    buckets: Buckets = BUCKETS,
) -> Examples:
  """Reads a corpus of the package.

  Args:
    task: 'ende', 'summ' or 'english'; the last has targets alone, so that
      `buckets` should have source lengths of 1.
    vocabulary: SentencePiece model.
    tokens_per_batch: see `Examples`.
    seed: see `Examples`.
    buckets: see `Examples`.

  Raises:
    FileNotFoundError: there is no vocabulary.
    ValueError: unknown task.
  """
  encode = Vocabulary(vocabulary).encode
  train, validation = (
      [
          (encode(pair.source), encode(pair.target))
          for pair in corpora.load_pairs(task, split)
      ]
      for split in ("train", "validation")
  )
  return Examples(train, validation, tokens_per_batch, seed, buckets)


@dataclasses.dataclass(frozen=True)
class SeqioExamples:
  """A SeqIO task or mixture, streamed; implements `Data`.

  Examples are sorted into buckets as they come, and a batch goes out when its
  bucket is full. A resumed run reads over what it has seen.

  Attributes:
    name: a registered task or mixture with the features `targets` and, unless
      the model is decoder-only, `inputs`. Names of `tasks` are registered if
      they are not yet.
    vocabulary: SentencePiece model of the tasks that are registered so.
    tokens_per_batch: positions in a batch, both sides, padding included.
    seed: of the order.
    buckets: (source length, target length) of the batch shapes. Longer
      sources are cut, examples with longer targets left out.
    num_validation: held-out examples, the first of the split.
    validation_split: name of the split.
  """

  name: str
  vocabulary: str | os.PathLike[str] = SHIPPED_PATH
  tokens_per_batch: int = 2048
  seed: int = 0
  buckets: Buckets = BUCKETS
  num_validation: int = 2000
  validation_split: str = "validation"

  def about(self) -> str:
    """See `Data`."""
    return (
        f"{self.name}, as a stream; too long for the buckets: texts are left"
        " out, sources cut."
    )

  def train_batches(self, start: int) -> Iterator[Batch]:
    """See `Data`."""
    batches = batching.stream_batches(
        self._examples("train", shuffle=True, num_epochs=None),
        self.tokens_per_batch,
        self.buckets,
    )
    return itertools.islice(batches, start, None)

  @functools.cached_property
  def validation(self) -> Sequence[Example]:
    """See `Data`."""
    examples = self._examples(
        self.validation_split, shuffle=False, num_epochs=1
    )
    return list(itertools.islice(examples, self.num_validation))

  def validation_batches(self) -> Iterator[Batch]:
    """See `Data`."""
    return _validation_batches(self)

  def _examples(self, split, shuffle, num_epochs) -> Iterator[Example]:
    dataset = self._task().get_dataset(
        # The batches cut: held-out texts are also references.
        sequence_length=None,
        split=split,
        shuffle=shuffle,
        seed=self.seed,
        num_epochs=num_epochs,
    )
    for example in dataset.as_numpy_iterator():
      source = example.get("inputs", ())
      yield _without_eos(source), _without_eos(example["targets"])

  def _task(self):
    # SeqIO takes seconds to import.
    import seqio

    from spec_t5x import tasks

    known = lambda: {
        *seqio.TaskRegistry.names(),
        *seqio.MixtureRegistry.names(),
    }
    if self.name not in known():
      tasks.register_shipped(self.vocabulary)
      tasks.register_papers(self.vocabulary)
    if self.name not in known():
      raise ValueError(
          f"`name` must be a SeqIO task or mixture. Got {self.name!r};"
          f" registered are {', '.join(sorted(known()))}."
      )
    return seqio.get_mixture_or_task(self.name)


def _without_eos(ids: Sequence[int]) -> list[int]:
  ids = list(map(int, ids))
  return ids[:-1] if ids[-1:] == [EOS_ID] else ids

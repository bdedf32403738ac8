"""Tests of training data: endless, the same again, SeqIO as in memory."""

import itertools

import numpy as np
import pytest
from toy_training import make_data

from spec_t5x import batching, corpora, train_data
from spec_t5x.vocabulary import Vocabulary

BUCKETS = ((32, 32), (64, 64))


def take(batches, number):
  return list(itertools.islice(batches, number))


def assert_same(first, second):
  assert len(first) == len(second)
  for a, b in zip(first, second, strict=True):
    assert a.keys() == b.keys()
    for name in a:
      np.testing.assert_array_equal(a[name], b[name])


def pairs_of(batches):
  """All examples, as (source, target) with EOS and without padding."""
  strip = lambda row: tuple(row[row > 0].tolist())
  return [
      (strip(source), strip(target))
      for batch in batches
      for source, target in zip(
          batch["encoder_input_tokens"],
          batch["decoder_target_tokens"],
          strict=True,
      )
      if target.any()
  ]


@pytest.mark.parametrize("start", [0, 1, 2, 3, 5])
def test_batches_continue_over_epochs(start):
  # Two batches an epoch.
  seven = take(make_data().train_batches(0), 7)
  rest = take(make_data().train_batches(start), 7 - start)
  assert_same(rest, seven[start:])


def test_epochs_have_orders_of_their_own():
  data = make_data()
  first, second = (
      pairs_of(take(data.train_batches(start), 2)) for start in (0, 2)
  )
  assert first != second
  assert sorted(first) == sorted(second)


def test_what_is_left_out_is_told():
  # With EOS: one fits, one target and two sources are too long.
  pairs = [([5, 6], [7]), ([5], [7] * 4), ([5] * 4, [7]), ([5] * 9, [7])]
  data = train_data.Examples(pairs, [], 16, buckets=((4, 4),))
  # Two batches of two rows of eight: 5 tokens, and 6 and 6.
  assert data.about() == (
      "4 texts, 2 batches an epoch, 47% padding; too long for the buckets:"
      " texts left out 1, sources cut 2."
  )


def test_validation_is_seen_whole():
  data = make_data()
  seen = pairs_of(data.validation_batches())
  expected = [((*s, 1), (*t, 1)) for s, t in data.validation]
  assert sorted(seen) == sorted(expected)


def test_shipped_corpora_are_encoded(monkeypatch):
  pairs = {
      "train": [corpora.Pair("translate: Open", "Öffnen", "a")],
      "validation": [corpora.Pair("translate: Save", "Speichern", "b")],
  }
  monkeypatch.setattr(corpora, "load_pairs", lambda task, split: pairs[split])
  data = train_data.shipped("ende", tokens_per_batch=64, seed=3)
  vocabulary = Vocabulary()
  assert [vocabulary.decode(x) for x in data.train[0]] == [
      "translate: Open",
      "Öffnen",
  ]
  assert vocabulary.decode(data.validation[0][1]) == "Speichern"
  assert data.tokens_per_batch == 64
  assert data.seed == 3


def test_stream_fills_buckets_as_they_come():
  examples = [([2] * n, [3] * n) for n in (1, 5, 1, 5, 1, 1)]
  stream = batching.stream_batches(examples, 24, ((6, 6), (2, 2)))
  shapes = [
      (
          b["encoder_input_tokens"].shape,
          int((b["decoder_target_tokens"] == 1).sum()),
      )
      for b in stream
  ]
  # Six short ones fit into a batch, two long ones; then what is left.
  assert shapes == [((2, 6), 2), ((6, 2), 4)]


def test_stream_holds_what_the_plan_holds():
  rng = np.random.default_rng(0)
  examples = [
      (rng.integers(2, 9, n).tolist(), rng.integers(2, 9, m).tolist())
      for n, m in rng.integers(0, 9, (50, 2))
  ]
  buckets = ((4, 4), (6, 8))
  streamed = pairs_of(batching.stream_batches(examples, 40, buckets))
  planned = pairs_of(batching.bucket_batches(examples, 40, buckets))
  assert sorted(streamed) == sorted(planned)
  assert 0 < len(streamed) < 50


def test_stream_checks_its_buckets_before_it_starts():
  with pytest.raises(ValueError, match="`tokens_per_batch` must hold at least"):
    next(batching.stream_batches([([2], [2])], 7, ((4, 4),)))


class TestSeqio:

  @pytest.fixture(autouse=True)
  def _seqio(self):
    pytest.importorskip("seqio")
    pytest.importorskip("tensorflow_text")

  @pytest.fixture
  def few_pairs(self, monkeypatch):
    """Cuts the corpora to some dozens of pairs, for tasks of this test."""
    import seqio

    monkeypatch.setattr(seqio.TaskRegistry, "_REGISTRY", {})
    load = corpora.load_pairs
    monkeypatch.setattr(
        corpora, "load_pairs", lambda task, split: load(task, split)[:60]
    )

  def make(self, **changes):
    settings = dict(
        name="spec_t5x_ende",
        tokens_per_batch=512,
        buckets=BUCKETS,
        num_validation=20,
    )
    return train_data.SeqioExamples(**{**settings, **changes})

  def test_first_epoch_holds_what_the_corpus_holds(self, few_pairs):
    in_memory = train_data.shipped(
        "ende", tokens_per_batch=512, buckets=BUCKETS
    )
    expected = set(pairs_of(take(in_memory.train_batches(0), 40)))
    seen = set(pairs_of(take(self.make().train_batches(0), 40)))
    assert seen == expected

  def test_continues_where_it_stopped(self, few_pairs):
    six = take(self.make().train_batches(0), 6)
    assert_same(take(self.make().train_batches(2), 4), six[2:])
    other = take(self.make(seed=1).train_batches(0), 6)
    assert pairs_of(other) != pairs_of(six)

  def test_validation(self, few_pairs):
    in_memory = train_data.shipped("ende", tokens_per_batch=512)
    assert self.make().validation == in_memory.validation[:20]

  def test_unknown_names(self):
    with pytest.raises(
        ValueError, match="`name` must be a SeqIO task or mixture. Got 'x'"
    ):
      next(self.make(name="x").train_batches(0))

"""Tests of batching: nothing lost, nothing twice, few shapes, same again."""

import collections
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spec_t5x import batching, corpora, vocabulary
from spec_t5x.types import EOS_ID, PAD_ID

BUCKETS = ((4, 4), (8, 4), (8, 8))
TOKENS = 50


def make_examples(num_examples, seed=0, longest=7):
  """Examples whose target starts with their own number, to be told apart."""
  rng = np.random.default_rng(seed)
  return [
      (
          rng.integers(2, 100, rng.integers(0, longest + 1)).tolist(),
          [1000 + i, *rng.integers(2, 100, rng.integers(0, longest)).tolist()],
      )
      for i in range(num_examples)
  ]


def batches_of(examples, **kwargs):
  return list(batching.bucket_batches(examples, TOKENS, BUCKETS, **kwargs))


def strip(row):
  """Ids of a row up to EOS, which must be there with only PAD behind it."""
  end = row.tolist().index(EOS_ID)
  assert not row[end + 1 :].any()
  return row[:end].tolist()


def examples_in(batches):
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


def assert_same(first, second):
  assert len(first) == len(second)
  for a, b in zip(first, second, strict=True):
    assert a.keys() == b.keys()
    for name in a:
      np.testing.assert_array_equal(a[name], b[name])


@settings(max_examples=50, deadline=None)
@given(num_examples=st.integers(1, 60), seed=st.integers(0, 2**31))
def test_every_example_is_seen_once_an_epoch(num_examples, seed):
  examples = make_examples(num_examples, seed)
  seen = examples_in(batches_of(examples, seed=seed, epoch=3))
  assert sorted(seen) == sorted(examples)


def test_rows_of_padding_hold_nothing_at_all():
  batches = batches_of(make_examples(3))
  padding = [
      (source, inputs)
      for batch in batches
      for source, target, inputs in zip(
          batch["encoder_input_tokens"],
          batch["decoder_target_tokens"],
          batch["decoder_input_tokens"],
          strict=True,
      )
      if not target.any()
  ]
  assert padding
  assert not any(a.any() or b.any() for a, b in padding)


def test_decoder_inputs_are_the_targets_shifted_behind_bos():
  for batch in batches_of(make_examples(40)):
    inputs = batch["decoder_input_tokens"]
    targets = batch["decoder_target_tokens"]
    assert not inputs[:, 0].any()
    np.testing.assert_array_equal(inputs[:, 1:], targets[:, :-1])


def test_shapes_are_those_of_the_plan_and_fill_the_budget():
  examples = make_examples(200)
  plan = batching.BatchPlan.make(examples, TOKENS, BUCKETS)
  batches = batches_of(examples)
  shapes = {
      (*b["encoder_input_tokens"].shape, b["decoder_target_tokens"].shape[1])
      for b in batches
  }
  assert shapes == set(plan.shapes)
  assert len(batches) == plan.num_batches
  for rows, source_length, target_length in shapes:
    row_tokens = source_length + target_length
    assert TOKENS - row_tokens < rows * row_tokens <= TOKENS
  for batch in batches:
    assert {array.dtype for array in batch.values()} == {np.dtype(np.int32)}


def test_an_example_goes_to_the_smallest_bucket_that_holds_it():
  examples = [([5] * 3, [5] * 3), ([5] * 4, [5] * 3), ([5] * 3, [5] * 4)]
  plan = batching.BatchPlan.make(examples, TOKENS, BUCKETS)
  assert plan.buckets == BUCKETS
  assert plan.members == ((0,), (1,), (2,))


def test_order_depends_on_seed_and_epoch_only():
  examples = make_examples(60)
  first = batches_of(examples, seed=1, epoch=2)
  assert_same(first, batches_of(examples, seed=1, epoch=2))
  for other in ({"seed": 2, "epoch": 2}, {"seed": 1, "epoch": 3}):
    assert examples_in(batches_of(examples, **other)) != examples_in(first)


@pytest.mark.parametrize("start", [0, 1, 7])
def test_a_run_carries_on_where_it_stopped(start):
  examples = make_examples(60)
  whole = batches_of(examples, seed=1, epoch=2)
  assert len(whole) > 7
  resumed = batches_of(examples, seed=1, epoch=2, start=start)
  assert_same(whole[start:], resumed)


def test_long_sources_are_cut_and_long_targets_dropped():
  examples = [
      (list(range(10, 30)), [50]),
      ([9], list(range(60, 68))),
      ([8], list(range(60, 67))),
  ]
  plan = batching.BatchPlan.make(examples, TOKENS, BUCKETS)
  assert (plan.num_truncated, plan.num_dropped) == (1, 1)
  seen = examples_in(batches_of(examples))
  # Seven ids and EOS fill a row of eight.
  assert sorted(seen) == [
      ([8], list(range(60, 67))),
      (list(range(10, 17)), [50]),
  ]


def test_padding_fraction_is_that_of_the_batches():
  examples = make_examples(100, longest=12)
  plan = batching.BatchPlan.make(examples, TOKENS, BUCKETS)
  count = collections.Counter()
  for batch in batches_of(examples):
    for name in ("encoder_input_tokens", "decoder_target_tokens"):
      count["all"] += batch[name].size
      count["padding"] += (batch[name] == PAD_ID).sum()
  assert plan.num_dropped
  assert plan.padding_fraction == pytest.approx(count["padding"] / count["all"])


def test_default_buckets_suit_the_shipped_corpora():
  pieces = vocabulary.Vocabulary()
  examples = [
      (pieces.encode(pair.source), pieces.encode(pair.target))
      for task in corpora.PREFIXES
      for pair in itertools.islice(
          corpora.load_pairs(task, "train"), 0, None, 5
      )
  ]
  plan = batching.BatchPlan.make(examples, 4096)
  assert len(plan.shapes) <= 12
  assert plan.padding_fraction < 0.25
  assert plan.num_dropped < 0.005 * len(examples)


def test_bad_arguments_are_named():
  examples = make_examples(3)
  with pytest.raises(ValueError, match="`examples` must not be empty"):
    batching.bucket_batches([], TOKENS, BUCKETS)
  with pytest.raises(ValueError, match="`buckets` must not be empty"):
    batching.bucket_batches(examples, TOKENS, ())
  with pytest.raises(ValueError, match="`buckets` must hold lengths >= 1"):
    batching.bucket_batches(examples, TOKENS, ((4, 0),))
  with pytest.raises(ValueError, match="largest bucket, 16. Got 15"):
    batching.bucket_batches(examples, 15, BUCKETS)
  with pytest.raises(ValueError, match="`start` must be between 0 and"):
    batching.bucket_batches(examples, TOKENS, BUCKETS, start=-1)

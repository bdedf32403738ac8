"""Tests of training data of several tasks."""

import itertools

import numpy as np
import pytest

from spec_t5x import train_mixture
from spec_t5x.train_data import Examples
from spec_t5x.train_mixture import Mixture


def make_part(token, count=8):
  """Batches of one example each, all of one token."""
  pairs = [([token], [token, 2 + number]) for number in range(count)]
  return Examples(pairs, pairs[:2], 8, seed=token, buckets=((4, 4),))


def make_mixture(rates=(3, 2)):
  return Mixture([make_part(20), make_part(30)], rates)


def first_tokens(batches, count):
  return [
      int(batch["encoder_input_tokens"][0, 0])
      for batch in itertools.islice(batches, count)
  ]


@pytest.mark.parametrize("rates", [(3, 2), (1, 1), (1, 7)])
def test_every_stretch_keeps_the_rates(rates):
  tokens = np.array(first_tokens(make_mixture(rates).train_batches(0), 80))
  share = rates[0] / sum(rates)
  for count in range(1, 81):
    assert abs((tokens[:count] == 20).sum() - share * count) <= 1


@pytest.mark.parametrize("start", [1, 2, 5, 23])
def test_a_resumed_run_sees_the_same_batches(start):
  batches = make_mixture().train_batches(0)
  whole = list(itertools.islice(batches, start + 10))
  rest = list(itertools.islice(make_mixture().train_batches(start), 10))
  for one, other in zip(whole[start:], rest, strict=True):
    assert one.keys() == other.keys()
    for name in one:
      np.testing.assert_array_equal(one[name], other[name])


def test_every_part_tells_what_it_has():
  lines = Mixture([make_part(20), make_part(30, 9)], (1, 1)).about().split("\n")
  assert [line.split(",")[0] for line in lines] == ["8 texts", "9 texts"]


def test_held_out_pairs_are_those_of_all_parts():
  mixture = make_mixture()
  assert [source for source, _ in mixture.validation] == [
      [20],
      [20],
      [30],
      [30],
  ]
  rows = sum(
      (batch["decoder_target_tokens"][:, 0] > 0).sum()
      for batch in mixture.validation_batches()
  )
  assert rows == 4


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ((1,), "Got 1 rates and 2 parts"),
        ((1, 0), "`rates` must be positive. Got"),
        ((1, float("nan")), "`rates` must be positive. Got"),
    ],
)
def test_rates_are_checked(rates, message):
  with pytest.raises(ValueError, match=message):
    make_mixture(rates)


def test_shipped_corpora_are_mixed():
  data = train_mixture.mixture(("ende", "summ"), (3, 2), tokens_per_batch=1024)
  ende, summ = data.parts
  assert len(ende.validation) == 808
  assert len(summ.validation) == 860

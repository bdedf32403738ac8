"""Tests of the quantities taken from raw counts and seconds."""

import numpy as np
import pytest

from spec_t5x.report import measures

TEXTS, PASSES = 60, 3


def speed(plain, speculative):
  """The measured speed of texts with these seconds, [texts, passes]."""
  return measures._speed(np.array(plain), np.array(speculative))


def seconds(rng, spread):
  """Of texts whose speed is 2, give or take `spread`; passes agree."""
  plain = rng.uniform(0.5, 1.5, (TEXTS, 1)) * np.ones(PASSES)
  return plain, plain / 2 * rng.uniform(1 - spread, 1 + spread, (TEXTS, 1))


def test_speed_is_a_ratio_of_sums():
  """A mean of ratios would be (2 + 1) / 2."""
  assert speed([[4.0], [1.0]], [[2.0], [1.0]]).value == pytest.approx(5 / 3)


def test_speed_is_the_median_pass_and_its_range_that_of_the_passes():
  """Where all texts are alike, the passes alone make a range."""
  plain = np.ones((TEXTS, 3))
  found = speed(plain, plain * [0.5, 0.4, 0.8])
  assert found == pytest.approx((2.0, 1.25, 2.5))


def test_the_range_is_that_of_texts_where_passes_agree():
  """95% of intervals hold the true speed, by 400 draws of the texts.

  With coverage 0.95 fewer than 360 hold it in 1.4e-5 of such tests.
  """
  rng = np.random.default_rng(0)
  found = [speed(*seconds(rng, 0.5)) for _ in range(400)]
  holds = lambda scale: sum(
      abs(2 - value) <= scale * (high - value) for value, _, high in found
  )
  assert 360 <= holds(1) < 400
  # A control: ranges half as wide hold it too rarely.
  assert holds(0.5) < 360


def test_more_texts_make_a_narrower_range():
  """Four times the texts, half the range."""
  rng = np.random.default_rng(1)
  plain, drafted = seconds(rng, 0.5)
  few = speed(plain, drafted)
  many = speed(np.tile(plain, (4, 1)), np.tile(drafted, (4, 1)))
  assert many.value == pytest.approx(few.value)
  assert many.high - many.low == pytest.approx((few.high - few.low) / 2)

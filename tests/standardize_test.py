import functools
import re

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from spec_t5x.standardize import argmax, standardize, validate_sampling

VOCAB = 32128  # T5's, padding included


def softmax(logits):
  """float64 reference."""
  logits = np.asarray(logits, np.float64)
  weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
  return weights / weights.sum(axis=-1, keepdims=True)


def random_logits(seed, *shape, scale=2.0):
  rng = np.random.default_rng(seed)
  return jnp.asarray(rng.normal(size=shape) * scale, jnp.float32)


@pytest.mark.parametrize('temperature', [1.0, 0.3, 2.0])
@pytest.mark.parametrize('vocab', [2, 97, VOCAB])
def test_temperature_is_softmax_of_scaled_logits(temperature, vocab):
  logits = random_logits(0, vocab)
  expected = softmax(np.asarray(logits, np.float64) / temperature)
  actual = standardize(logits, temperature)
  assert actual.dtype == jnp.float32
  np.testing.assert_allclose(actual, expected, atol=1e-6, rtol=1e-5)


def test_bfloat16_logits_are_computed_in_float32():
  logits = random_logits(1, 64).astype(jnp.bfloat16)
  expected = softmax(np.asarray(logits.astype(jnp.float32)))
  np.testing.assert_allclose(standardize(logits), expected, atol=1e-7)


# T5X decodes by argmax up to 1e-4, that value included.
@pytest.mark.parametrize('temperature', [0.0, 1e-5, 1e-4])
def test_temperature_zero_is_one_hot_with_ties_to_the_lowest_id(temperature):
  logits = jnp.array([0.0, 3.0, -1.0, 3.0])
  expected = [0.0, 1.0, 0.0, 0.0]
  np.testing.assert_array_equal(standardize(logits, temperature), expected)
  traced = jax.jit(standardize)(logits, temperature)
  np.testing.assert_array_equal(traced, expected)


@pytest.mark.parametrize('rows', [(), (3,), (2, 5)])
def test_argmax_is_numpys_and_ties_go_to_the_lowest_id(rows):
  rng = np.random.default_rng(0)
  logits = rng.integers(0, 6, (*rows, 33)).astype('float32')
  logits[..., 4] = -np.inf
  ids = argmax(jnp.asarray(logits))
  assert ids.dtype == jnp.int32
  np.testing.assert_array_equal(ids, np.argmax(logits, axis=-1))


def test_argmax_of_rows_without_a_law_is_an_id():
  rows = jnp.array([[0, jnp.nan, 1], [-jnp.inf] * 3, [0, jnp.inf, 1]])
  np.testing.assert_array_equal(argmax(rows), [2, 0, 1])


def test_just_above_the_greedy_temperature_is_sampled():
  logits = jnp.array([0.0, 3.0, -1.0, 3.0])
  np.testing.assert_allclose(standardize(logits, 1.1e-4), [0, 0.5, 0, 0.5])


def test_temperature_is_per_row_and_may_be_traced():
  logits = random_logits(2, 3, 5, 11)
  temperature = jnp.array([0.0, 1.0, 0.5])
  batched = jax.jit(jax.vmap(standardize))(logits, temperature)
  broadcast = standardize(logits, temperature[:, None])
  np.testing.assert_array_equal(batched, broadcast)
  for row in range(3):
    alone = standardize(logits[row], float(temperature[row]))
    np.testing.assert_allclose(batched[row], alone, atol=1e-7)


# Neither branch of the choice between argmax and softmax may make a NaN,
# however large the logits; `debug_nans` looks into both.
@pytest.mark.parametrize('temperature', [0.0, 1.01e-4, 1.0])
def test_extreme_logits_make_no_nan(temperature):
  logits = jnp.array([3e38, -3e38, 0.0, -jnp.inf])
  with jax.debug_nans(True):
    probs = jax.jit(standardize)(logits, temperature)
  np.testing.assert_array_equal(probs, [1.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize('temperature', [0.0, 1.0])
@pytest.mark.parametrize(
    'row', [[0.0, np.nan], [np.inf, 0.0], [-np.inf, -np.inf]]
)
def test_row_without_a_law_is_nan_at_every_temperature(row, temperature):
  assert np.isnan(standardize(jnp.array(row), temperature)).all()


@pytest.mark.parametrize(
    'settings',
    [
        dict(),
        dict(top_k=3),
        dict(top_k=5),
        dict(top_p=0.99),
        dict(temperature=0),
    ],
)
def test_banned_ids_have_probability_zero(settings):
  logits = random_logits(3, 8).at[jnp.array([0, 5, 6, 7])].set(-jnp.inf)
  probs = standardize(logits, **settings)
  np.testing.assert_array_equal(probs[jnp.array([0, 5, 6, 7])], 0.0)
  np.testing.assert_allclose(probs.sum(), 1.0, atol=1e-6)


def top_k_reference(logits, top_k):
  threshold = np.sort(logits)[-top_k]
  return softmax(np.where(logits >= threshold, logits, -np.inf))


def top_p_reference(logits, top_p):
  probs = softmax(logits)
  ranked = np.sort(probs)[::-1]
  crossing = ranked[np.searchsorted(np.cumsum(ranked), top_p)]
  return softmax(np.where(probs >= crossing, logits, -np.inf))


@pytest.mark.parametrize('top_k', [1, 2, 40])
def test_top_k(top_k):
  logits = random_logits(4, 1000)
  expected = top_k_reference(np.asarray(logits, np.float64), top_k)
  probs = standardize(logits, top_k=top_k)
  np.testing.assert_allclose(probs, expected, atol=1e-6)
  assert np.count_nonzero(probs) == top_k


def test_top_k_keeps_ties_at_the_threshold_as_t5x_does():
  logits = jnp.array([1.0, 2.0, 1.0, 0.0, 1.0])
  kept = np.asarray(standardize(logits, top_k=2)) > 0
  np.testing.assert_array_equal(kept, [True, True, True, False, True])


@pytest.mark.parametrize('off', [dict(top_k=8), dict(top_k=9), dict(top_p=1.0)])
def test_truncation_that_keeps_everything_changes_nothing(off):
  logits = random_logits(5, 8)
  expected = standardize(logits)
  np.testing.assert_array_equal(standardize(logits, **off), expected)


@pytest.mark.parametrize('top_p', [0.05, 0.5, 0.9, 0.999])
@pytest.mark.parametrize('temperature', [0.7, 1.0])
def test_top_p(top_p, temperature):
  logits = random_logits(6, 4, 1000)
  probs = standardize(logits, temperature, top_p=top_p)
  for row in range(4):
    scaled = np.asarray(logits[row], np.float64) / temperature
    expected = top_p_reference(scaled, top_p)
    np.testing.assert_allclose(probs[row], expected, atol=1e-6)


def test_top_p_keeps_the_token_that_crosses_and_its_ties():
  logits = jnp.log(jnp.array([0.5, 0.2, 0.2, 0.1]))
  expected = np.array([0.5, 0.2, 0.2, 0.0]) / 0.9
  np.testing.assert_allclose(
      standardize(logits, top_p=0.6), expected, atol=1e-6
  )
  # Exactly reached by the first token: nothing more is kept.
  np.testing.assert_array_equal(standardize(logits, top_p=0.5), [1, 0, 0, 0])


def test_top_p_just_below_one_keeps_every_token_of_a_flat_law():
  probs = standardize(jnp.zeros(VOCAB), top_p=float(np.nextafter(1.0, 0.0)))
  assert np.count_nonzero(probs) == VOCAB


# A sort of 32k ids costs 9 ms on a CPU core: more than a small model's step.
def test_nothing_is_sorted_without_truncation():
  def lowered(**settings):
    fn = functools.partial(standardize, **settings)
    return jax.jit(fn).lower(jnp.zeros(VOCAB), 1.0).as_text()

  assert 'top_k' in lowered(top_k=4)
  assert 'top_k' not in lowered()
  assert 'sort' not in lowered()
  assert 'sort' not in lowered(top_p=0.9)


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        ((-0.1, 0, 0.0), '`temperature` must be finite and >= 0. Got -0.1.'),
        ((np.nan, 0, 0.0), '`temperature` must be finite and >= 0. Got nan.'),
        (([1.0, np.inf], 0, 0.0), '`temperature` must be finite'),
        ((1.0, -1, 0.0), '`top_k` must be >= 0, 0 = off. Got -1.'),
        ((1.0, 2.5, 0.0), '`top_k` must be an integer, 0 = off. Got 2.5.'),
        ((1.0, True, 0.0), '`top_k` must be an integer, 0 = off. Got True.'),
        ((1.0, 0, 1.1), '`top_p` must be in [0, 1], 0 or 1 = off. Got 1.1.'),
        ((1.0, 0, np.nan), '`top_p` must be in [0, 1], 0 or 1 = off. Got nan.'),
        (
            (1.0, 40, 0.9),
            '`top_k` and `top_p` must not be used together. '
            'Got top_k = 40, top_p = 0.9.',
        ),
    ],
)
def test_bad_settings_are_named(settings, message):
  with pytest.raises(ValueError, match=re.escape(message)):
    validate_sampling(*settings)


def test_good_settings_pass():
  for settings in [(0, 0, 0), (np.array([0.0, 1.0]), np.int64(4), 1.0)]:
    validate_sampling(*settings)


def test_standardize_refuses_both_truncations():
  with pytest.raises(ValueError, match='`top_k` and `top_p` must not be used'):
    standardize(jnp.zeros(8), top_k=2, top_p=0.5)

"""One position: q * accept + (1 - sum(q * accept)) * residual = p."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from spec_t5x.acceptance import accept_probs, overlaps, residual_probs
from spec_t5x.standardize import standardize


def softmax_laws(seed, vocab, dtype=jnp.float32, scale=3.0):
  logits = np.random.default_rng(seed).normal(size=(2, vocab)) * scale
  return standardize(jnp.asarray(logits, dtype))


def one_hot(index, vocab):
  return jax.nn.one_hot(index, vocab)


def pairs_of_laws():
  random = softmax_laws(0, 50)
  return {
      "random": random,
      "two tokens": softmax_laws(1, 2),
      "T5's vocabulary": softmax_laws(2, 32128),
      "bfloat16": softmax_laws(3, 1000, jnp.bfloat16),
      "bfloat16, far apart": softmax_laws(4, 1000, jnp.bfloat16, 20.0),
      "equal": (random[0], random[0]),
      "one-hot, equal": (one_hot(3, 50), one_hot(3, 50)),
      "one-hot, different": (one_hot(3, 50), one_hot(4, 50)),
      "one-hot draft": (random[0], one_hot(7, 50)),
      "one-hot target": (one_hot(7, 50), random[1]),
      "disjoint": (
          standardize(jnp.array([1.0, 2.0, -jnp.inf, -jnp.inf])),
          standardize(jnp.array([-jnp.inf, -jnp.inf, 0.5, 0.1])),
      ),
      "half disjoint": (
          standardize(jnp.array([1.0, 2.0, 0.0, -jnp.inf])),
          standardize(jnp.array([-jnp.inf, 1.0, 0.5, 0.1])),
      ),
      "differently truncated": (
          standardize(jnp.arange(9.0), top_k=4),
          standardize(-jnp.arange(9.0) / 4, 0.7, top_k=7),
      ),
      "flat against peaked": (
          jnp.full(32128, 1 / 32128),
          one_hot(5, 32128) * 0.5 + 0.5 / 32128,
      ),
      "nearly equal": (random[0], random[0] * (1 + 1e-7)),
      # public bug: draft takes argmax but q = softmax (that pair of laws).
      "reported pair": (
          jnp.array([0.3, 0.5, 0.1, 0.1]),
          jnp.array([0.4, 0.25, 0.2, 0.15]),
      ),
  }


def accept_everywhere(p, q, lenience=1.0):
  """`accept_probs` of every token of the vocabulary."""
  one = lambda token: accept_probs(p[None], q[None], token[None], lenience)[0]
  return np.asarray(jax.vmap(one)(jnp.arange(p.size)), np.float64)


def emitted_law(p, q, accept, residual):
  """Law of the token that one test emits, in float64."""
  kept = np.asarray(q, np.float64) * accept
  return kept + (1 - kept.sum()) * np.asarray(residual, np.float64)


def error(law, p):
  return np.abs(law - np.asarray(p, np.float64)).max()


@pytest.mark.parametrize("name", pairs_of_laws())
def test_one_position_is_exact(name):
  p, q = pairs_of_laws()[name]
  law = emitted_law(p, q, accept_everywhere(p, q), residual_probs(p, q))
  assert error(law, p) < 1e-6


@pytest.mark.parametrize("name", pairs_of_laws())
def test_accept_residual_and_overlap_against_float64(name):
  laws = pairs_of_laws()[name]
  p, q = (np.asarray(law, np.float64) for law in laws)
  accept = accept_everywhere(*laws)
  possible = q > 0
  expected = np.minimum(1, p[possible] / q[possible])
  np.testing.assert_allclose(accept[possible], expected, atol=1e-6)
  assert (accept[p == 0] == 0).all()

  residual = np.asarray(residual_probs(*laws), np.float64)
  assert np.isfinite(residual).all()
  np.testing.assert_allclose(residual.sum(), 1, atol=1e-5)
  excess = np.maximum(0, p - q)
  if excess.sum() > 1e-3:
    np.testing.assert_allclose(residual, excess / excess.sum(), atol=1e-6)

  overlap = overlaps(laws[0][None], laws[1][None], jnp.zeros(1, jnp.int32))
  np.testing.assert_allclose(overlap, [np.minimum(p, q).sum()], atol=2e-6)
  assert overlap[0] <= 1
  # Theorem 3.5.
  np.testing.assert_allclose(overlap[0], (q * accept).sum(), atol=2e-6)


@pytest.mark.parametrize(
    "fault",
    [
        lambda p, q: (np.ones(p.size), residual_probs(p, q)),
        lambda p, q: (accept_everywhere(p, q), p),
        lambda p, q: (accept_everywhere(q, p), residual_probs(p, q)),
        lambda p, q: (accept_everywhere(p, q), residual_probs(q, p)),
        lambda p, q: (accept_everywhere(p, q) + 1e-4, residual_probs(p, q)),
    ],
    ids=[
        "always accept",
        "no residual",
        "ratio swapped",
        "residual swapped",
        "epsilon",
    ],
)
def test_faulty_rules_fail_that_check(fault):
  p, q = pairs_of_laws()["reported pair"]
  assert error(emitted_law(p, q, *fault(p, q)), p) > 1e-5


@pytest.mark.parametrize("token", [0, 2, 4])
def test_point_mass_is_exact(token):
  p = standardize(jnp.array([0.5, 1.0, -1.0, 0.0, -jnp.inf]))
  q = one_hot(token, 5)
  accept = accept_probs(p[None], None, jnp.array([token]))
  np.testing.assert_array_equal(accept, p[token])
  residual = residual_probs(p, q)
  assert residual[token] == 0
  assert error(emitted_law(p, q, float(accept[0]), residual), p) < 1e-7


# --- lenience (A.5) ----------------------------------------------------------


@pytest.mark.parametrize("name", pairs_of_laws())
@pytest.mark.parametrize("lenience", [0.7, 0.3, 0.05])
def test_lenience_bounds_every_probability_and_the_distance(name, lenience):
  laws = pairs_of_laws()[name]
  accept = accept_everywhere(*laws, lenience)
  law = emitted_law(*laws, accept, residual_probs(*laws))
  p, q = (np.asarray(law, np.float64) for law in laws)
  np.testing.assert_allclose(law.sum(), 1, atol=1e-5)
  assert (law <= p / lenience + 1e-6).all()
  overlap = overlaps(laws[0][None], laws[1][None], jnp.array([0]), lenience)[0]
  np.testing.assert_allclose(overlap, (q * accept).sum(), atol=2e-6)
  distance = np.abs(law - p).sum() / 2
  expected = overlap - np.minimum(p, q).sum()
  np.testing.assert_allclose(distance, expected, atol=2e-6)


def test_lenience_changes_the_law():
  p, q = pairs_of_laws()["reported pair"]
  law = emitted_law(p, q, accept_everywhere(p, q, 0.5), residual_probs(p, q))
  assert error(law, p) > 0.01


def test_lenience_one_is_the_exact_rule():
  p, q = softmax_laws(5, 9)
  exact = accept_everywhere(p, q)
  np.testing.assert_array_equal(accept_everywhere(p, q, 1.0), exact)

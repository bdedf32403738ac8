"""Verification run with random numbers; for the exact law see
`verification_law_test.py`."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp
from scipy import stats

from spec_t5x.standardize import sample, standardize
from spec_t5x.verification import verify_block, verify_tokens

# public bug: draft takes argmax but q = softmax. The reported pair of laws.
P = jnp.array([0.3, 0.5, 0.1, 0.1])
Q = jnp.array([0.4, 0.25, 0.2, 0.15])
COUNT = 200_000


def run_rounds(rule, draft_law=Q, gamma=1, count=COUNT):
  """Returns the first token of each of `count` rounds, and the verdicts."""
  keys = jax.random.split(jax.random.key(0), 3)
  words = jax.random.bits(keys[0], (count * gamma, 2))
  uniforms = jax.random.uniform(keys[1], (count, gamma))
  bits = jax.random.bits(keys[2], (count, 2))
  tokens = jax.jit(jax.vmap(sample, (None, 0)))(draft_law, words)
  tokens = tokens.reshape(count, gamma)
  p, q = jnp.tile(P, (gamma + 1, 1)), jnp.tile(Q, (gamma, 1))
  run = jax.jit(jax.vmap(rule, (None, None, 0, 0, 0)))
  verdict = run(p, q, tokens, uniforms, bits)
  first = jnp.where(verdict.num_accepted > 0, tokens[:, 0], verdict.next_token)
  return np.asarray(first), verdict


def chi_square_p_value(tokens):
  observed = np.bincount(tokens, minlength=4)
  return stats.chisquare(observed, np.asarray(P, np.float64) * COUNT).pvalue


# False-alarm rate 1e-6, fixed keys.
@pytest.mark.parametrize("rule", [verify_tokens, verify_block])
@pytest.mark.parametrize("gamma", [1, 3])
def test_sampled_tokens_follow_the_target(rule, gamma):
  tokens, _ = run_rounds(rule, gamma=gamma)
  assert chi_square_p_value(tokens) > 1e-6
  law = np.bincount(tokens, minlength=4) / COUNT
  assert np.abs(law - P).sum() / 2 < 0.005


# public bug: draft takes argmax but q = softmax. The same check must fail.
def test_a_draft_that_lies_about_its_law_fails_that_check():
  tokens, _ = run_rounds(verify_tokens, draft_law=standardize(jnp.log(Q), 0.0))
  assert chi_square_p_value(tokens) < 1e-6
  law = np.bincount(tokens, minlength=4) / COUNT
  np.testing.assert_allclose(law, [0.75, 0.25, 0, 0], atol=0.005)


# public bug: one u for all positions: 3.195 accepted instead of 2.361.
# Independent tests accept sum(alpha^i); with alpha = 0.75 here, 4 tokens:
# 2.0508; 5 standard errors of 0.0072: false-alarm rate 6e-7.
def test_accepted_tokens_are_a_capped_geometric_mean():
  expected = sum(0.75**i for i in range(1, 5))
  _, verdict = run_rounds(verify_tokens, gamma=4, count=50_000)
  np.testing.assert_allclose(verdict.overlap[0], 0.75, atol=1e-6)
  tolerance = 5 * np.std(verdict.num_accepted) / 50_000**0.5
  assert abs(np.mean(verdict.num_accepted) - expected) < tolerance

  reused = lambda p, q, x, u, bits: verify_tokens(
      p, q, x, jnp.full_like(u, u[0]), bits
  )
  _, verdict = run_rounds(reused, gamma=4, count=50_000)
  assert abs(np.mean(verdict.num_accepted) - expected) > tolerance


# alpha_hat = accepted / tested estimates alpha; accepted / drafted does not.
def test_accepted_of_tested_is_alpha():
  _, verdict = run_rounds(verify_tokens, gamma=4, count=50_000)
  accepted, tested = verdict.num_accepted.sum(), verdict.num_tested.sum()
  tolerance = 5 * (0.75 * 0.25 / tested) ** 0.5  # false alarms: 6e-7
  assert abs(accepted / tested - 0.75) < tolerance
  assert abs(accepted / (4 * 50_000) - 0.75) > tolerance

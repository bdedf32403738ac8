"""Tests of the losses: tokens, and the laws of another model."""

import jax
import numpy as np
import pytest

from spec_t5x import train_loss

TARGETS = np.array([[4, 1, 0], [2, 0, 0]])


def draw_logits(seed):
  return np.random.default_rng(seed).normal(0, 2, (2, 3, 5)).astype("float32")


def test_token_loss_is_cross_entropy_without_padding():
  rng = np.random.default_rng(0)
  logits = rng.normal(0, 2, (2, 3, 5)).astype("float32")
  targets = np.array([[4, 1, 0], [2, 0, 0]])
  probs = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
  log_z = np.log(np.exp(logits).sum(-1))
  at = [(0, 0, 4), (0, 1, 1), (1, 0, 2)]
  expected = -sum(np.log(probs[index]) for index in at)
  penalty = 0.1 * sum(log_z[index[:2]] ** 2 for index in at)
  loss, nats, count = train_loss.token_loss(logits, targets, z_loss=0.1)
  np.testing.assert_allclose(nats, expected, rtol=1e-5)
  np.testing.assert_allclose(loss, expected + penalty, rtol=1e-5)
  assert count == 3


def test_imitation_loss_of_each_token_by_hand():
  logits, law = draw_logits(0), jax.nn.softmax(draw_logits(1))
  expected = 0.0
  for row, place in [(0, 0), (0, 1), (1, 0)]:
    p = np.asarray(law[row, place], "float64")
    q = np.exp(logits[row, place].astype("float64"))
    q /= q.sum()
    expected += 0.5 * (-(p * np.log(q)).sum() + abs(p - q).sum() / 2)
  loss = train_loss.imitation_loss(logits, law, TARGETS)
  assert float(loss) == pytest.approx(expected, rel=1e-5)


def test_imitation_loss_is_least_at_the_law_itself():
  logits = draw_logits(0)
  law = jax.nn.softmax(logits)
  least = train_loss.imitation_loss(logits, law, TARGETS)
  for seed in range(1, 9):
    other = logits + 0.1 * draw_logits(seed)
    assert train_loss.imitation_loss(other, law, TARGETS) > least


def test_imitation_loss_ignores_padding():
  logits = draw_logits(0)
  law = np.asarray(jax.nn.softmax(draw_logits(1)))
  changed = np.where(TARGETS[..., None] > 0, logits, 7 * logits)
  first, second = (
      train_loss.imitation_loss(x, law, TARGETS) for x in (logits, changed)
  )
  assert float(first) == float(second)

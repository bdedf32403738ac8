"""A row's output depends on its own input, key, temperature and limit only."""

import jax
import numpy as np
import pytest
import toy_models
from jax import numpy as jnp

from spec_t5x import inputs
from spec_t5x.decoding_types import Models, Weights
from spec_t5x.drafts.model import ModelDraft

VOCAB, GAMMA, LENGTH, ROWS = 8, 3, 12, 9


def random_pair(seed=0, gap=0.7):
  """Tables of a target and of a draft that often agrees."""
  rng = np.random.default_rng(seed)
  target = rng.normal(size=(ROWS, 1021, VOCAB)).astype("float32")
  target[..., 1] -= 1.0  # longer texts
  other = rng.normal(size=target.shape).astype("float32")
  return Weights(target, target + gap * other)


def mixed_rows(seed=0):
  """Ragged prompts, limits, and temperatures with 0 among them."""
  rng = np.random.default_rng(seed)
  known = rng.integers(0, 3, ROWS)
  prompt = rng.integers(2, VOCAB, (ROWS, 2))
  return toy_models.rows(
      ROWS,
      limit=known + rng.integers(4, LENGTH - 1, ROWS),
      temperature=np.array([1.0, 0.0, 0.5] * 3),
      prompt=np.where(np.arange(2) < known[:, None], prompt, 0),
      seed=seed,
  )


def decode(rows, texts, gamma=GAMMA, weights=None, **changes):
  scorer = toy_models.TableScorer(VOCAB)
  return toy_models.run(
      Models(scorer, ModelDraft(scorer, gamma) if gamma else None),
      toy_models.settings(LENGTH, VOCAB, **changes),
      weights or random_pair(),
      np.asarray(texts)[:, None],
      rows,
  )


def take(tree, rows):
  return jax.tree.map(lambda x: x[rows], tree)


def assert_same(a, b):
  jax.tree.map(np.testing.assert_array_equal, a, b)


@pytest.mark.parametrize("block_verification", [False, True])
def test_alone_as_in_any_batch(block_verification):
  rows, texts = mixed_rows(), np.arange(ROWS)
  sets = dict(block_verification=block_verification)
  together = decode(rows, texts, **sets)
  assert len({tuple(text) for text in together.tokens.tolist()}) == ROWS
  order = np.random.default_rng(1).permutation(ROWS)
  shuffled = decode(take(rows, order), texts[order], **sets)
  assert_same(take(together, order), shuffled)
  for row in range(ROWS):
    one = np.array([row])
    assert_same(
        take(together, one), decode(take(rows, one), texts[one], **sets)
    )


def test_rows_at_temperature_0_are_greedy():
  rows, texts = mixed_rows(), np.arange(ROWS)
  cold = np.flatnonzero(rows.temperature == 0)
  mixed = take(decode(rows, texts), cold)
  greedy = decode(take(rows, cold), texts[cold], greedy=True)
  np.testing.assert_array_equal(mixed.tokens, greedy.tokens)
  np.testing.assert_array_equal(mixed.token_log_probs, 0.0)
  assert_same(mixed.counts, greedy.counts)


def test_keys_are_distinct_and_depend_on_seed_example_and_decode_only():
  data = lambda *of: np.asarray(jax.random.key_data(inputs.row_keys(*of)))
  keys = data(0, [3, 1, 2**32 - 1], 4)
  assert_same(keys[4:8], data(0, [1], 4))
  assert_same(keys[8:10], data(0, [2**32 - 1], 2))
  every = np.concatenate([data(seed, range(50), 4) for seed in range(5)])
  assert len(np.unique(every, axis=0)) == 5 * 50 * 4


def test_decodes_of_one_input_differ_and_a_seed_repeats_them():
  flat = Weights(jnp.zeros((1, 1, VOCAB)), jnp.zeros((1, 1, VOCAB)))
  texts = {}
  for seed in (0, 1, 0):
    rows = toy_models.rows(6, LENGTH)
    rows = rows._replace(keys=inputs.row_keys(seed, [0, 1], 3))
    decoded = decode(rows, [0, 0], weights=flat, num_decodes=3, eos_id=VOCAB)
    texts.setdefault(seed, decoded.tokens)
    assert_same(texts[seed], decoded.tokens)
  every = np.concatenate([texts[0], texts[1]])
  assert len(np.unique(every, axis=0)) == 12

"""Logits on their way to tokens: callbacks, padded ids, log-probabilities."""

import jax
import numpy as np
import pytest
import toy_laws
import toy_models
from enumeration import Cells, Script, output_laws, text_law
from jax import numpy as jnp
from toy_laws import HALVES, ToyLaws

from spec_t5x.decoding_types import Models, Weights
from spec_t5x.drafts.model import ModelDraft

LAW = ToyLaws(HALVES, 22)


def pair(target_vocab, draft_vocab, gamma):
  """Table models of vocabularies that may be padded differently."""
  target = toy_models.TableScorer(target_vocab)
  draft = toy_models.TableScorer(draft_vocab)
  return Models(target, ModelDraft(draft, gamma) if gamma else None)


def roll_by_prefix(logits, tokens, index):
  """A callback that moves logits by the sum and the number of known tokens."""
  known = jnp.arange(1, tokens.shape[1]) < index[:, None]
  total = jnp.where(known, tokens[:, 1:], 0).sum(axis=1)
  return jax.vmap(jnp.roll)(logits, total + index)


def rolled_law(prefix):
  return np.roll(LAW.target(prefix), sum(prefix) + len(prefix) + 1).tolist()


@pytest.mark.parametrize("gamma", [0, 2])
def test_callback_sees_the_right_prefix_at_every_place(gamma):
  (output,) = output_laws(
      pair(4, 4, gamma),
      toy_models.settings(3, 4, logit_callback=roll_by_prefix),
      Weights(*toy_laws.tables([LAW], 3 + gamma)),
      Script.of(Cells(2, 2, 4), gamma, 3),
  )
  assert output == text_law(rolled_law, 3)
  assert output != text_law(LAW.target, 3)


def ban(logits, tokens, index):
  """Bans EOS before the fifth token, and token 7, and repetitions."""
  ids = jnp.arange(logits.shape[1])
  previous = jnp.take_along_axis(tokens, index[:, None] - 1, axis=1)
  banned = (ids == 7) | (ids == 1) & (index[:, None] < 5) | (ids == previous)
  return jnp.where(banned, -jnp.inf, logits)


@pytest.mark.parametrize("gamma", [1, 4])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_callback_that_bans(gamma, temperature):
  rng = np.random.default_rng(0)
  tables = rng.normal(size=(2, 1, 1021, 8)).astype("float32")
  tables[..., [1, 7]] += 2.0
  rows = toy_models.rows(300, 9, temperature)
  known = rng.integers(2, 7, (300, 1))
  rows = rows._replace(prompt=jnp.asarray(known, "int32"))
  decode = lambda gamma, weights: toy_models.run(
      pair(8, 8, gamma),
      toy_models.settings(9, 8, greedy=temperature == 0, logit_callback=ban),
      weights,
      np.zeros((300, 1)),
      rows,
  )
  decoded = decode(gamma, Weights(*tables))
  tokens = decoded.tokens
  assert decoded.finite.all()
  assert not (tokens == 7).any()
  assert not (tokens[:, :4] == 1).any()
  assert (tokens[:, 4:] == 1).any(axis=1).all() or temperature > 0
  assert not ((tokens[:, 1:] == tokens[:, :-1]) & (tokens[:, 1:] != 0)).any()
  if temperature == 0:
    plain = decode(0, Weights(tables[0]))
    np.testing.assert_array_equal(tokens, plain.tokens)


@pytest.mark.parametrize(("target_vocab", "draft_vocab"), [(6, 4), (4, 6)])
def test_padded_ids_are_never_emitted(target_vocab, draft_vocab):
  """Models pad a vocabulary of 4; their favourite is a padded id."""

  def padded(law, vocab):
    weights = lambda p: [*p, *[8.0] * (vocab - 4)]
    real = lambda prefix: all(token < 4 for token in prefix)
    return lambda prefix: weights(law(prefix) if real(prefix) else [0.25] * 4)

  (output,) = output_laws(
      pair(target_vocab, draft_vocab, 1),
      toy_models.settings(2, 4),
      Weights(
          toy_models.table_of(
              padded(LAW.target, target_vocab), target_vocab, 3
          ),
          toy_models.table_of(padded(LAW.draft, draft_vocab), draft_vocab, 3),
      ),
      Script.of(Cells(2, 2, 4), 1, 2),
  )
  assert output == text_law(LAW.target, 2)


def test_padded_ids_at_temperature_0():
  """The recipe 8 against 12 ids; the target would pick id 11."""
  rng = np.random.default_rng(0)
  target = rng.normal(size=(1, 1021, 12)).astype("float32")
  draft = target[..., :8] + 0.3 * rng.normal(size=(1, 1021, 8))
  target[..., 8:] += 9.0
  rows = toy_models.rows(1, 30, 0.0)
  decode = lambda models, weights: toy_models.run(
      models,
      toy_models.settings(30, 8, greedy=True, eos_id=8),
      weights,
      np.zeros((1, 1)),
      rows,
  )
  plain = decode(pair(12, 8, 0), Weights(target))
  decoded = decode(pair(12, 8, 4), Weights(target, draft))
  np.testing.assert_array_equal(decoded.tokens, plain.tokens)
  assert decoded.tokens.max() < 8
  assert 0 < decoded.counts.accepted.sum() < decoded.counts.tested.sum()

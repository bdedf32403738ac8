"""At temperature 0 speculative decoding gives plain decoding's tokens.

By default 2,268 texts of T5s in float32, and 9,216 of table models; in the
slow run another 3,564 of T5s. No text may differ in any token.
"""

import functools

import jax
import numpy as np
import pytest
import toy_models
from jax import numpy as jnp

from spec_t5x import decoding, network
from spec_t5x.decoding_types import Models, Weights
from spec_t5x.drafts.model import ModelDraft
from spec_t5x.types import EOS_ID

VOCAB = 16
PROMPT = 3
MAX_LENGTH = PROMPT + 21
LAYERS = dict(num_encoder_layers=1, num_decoder_layers=1)
GAMMAS = (1, 2, 3, 4, 5, 6, 7, 8, 16)
PAIRS = 27  # each a target of its own, and three drafts
BATCH = 7


@functools.cache
def jitted(gamma, packed):
  """The loop for two tiny T5s; plain decoding for gamma = 0."""
  config, _ = toy_models.tiny_t5(0, packed, **LAYERS)
  scorer = network.T5Scorer(config)
  models = Models(scorer, ModelDraft(scorer, gamma) if gamma else None)
  settings = toy_models.settings(MAX_LENGTH, VOCAB, greedy=True)
  return jax.jit(functools.partial(decoding.decode, models, settings))


@functools.cache
def pair_of(seed, packed, kind):
  """A T5 that ends many texts; a draft that agrees always, often or rarely."""
  _, target = toy_models.tiny_t5(seed, packed, eos_scale=2.0, **LAYERS)
  target = toy_models.noisy(target, seed, 0.5)
  amount = {"same": 0.0, "noisy": 0.2, "other": 5.0}[kind]
  return Weights(target, toy_models.noisy(target, seed + 1000, amount))


def task_of(seed, gamma, batch, vocab=VOCAB):
  """Inputs of ragged lengths, ragged prompts, and limits at every edge."""
  rng = np.random.default_rng(seed)
  place = np.arange(8)
  inputs = rng.integers(2, vocab, (batch, 8))
  inputs = np.where(place < rng.integers(1, 9, (batch, 1)), inputs, 0)
  prompts = rng.integers(2, vocab, (batch, PROMPT))
  known = rng.integers(0, PROMPT + 1, batch)
  prompts = np.where(place[:PROMPT] < known[:, None], prompts, 0)
  longest = MAX_LENGTH - PROMPT
  edges = [1, 2, gamma, gamma + 1, gamma + 2, 2 * gamma + 1, longest, longest]
  limits = known + np.minimum(rng.choice(edges, batch), longest)
  inputs = jnp.asarray(inputs, "int32")
  return inputs, toy_models.rows(batch, limits, 0.0, prompts)


def compare(gamma, packed, batch):
  """Counts texts, differences, and texts that EOS ended; pools the counts."""
  texts, different, ended = 0, 0, 0
  counts = {"same": 0, "noisy": 0, "other": 0}
  for seed in range(PAIRS):
    inputs, rows = task_of(seed, gamma, batch)
    for kind in counts:
      weights = pair_of(seed, packed, kind)
      if kind == "same":
        plain = jitted(0, packed)(Weights(weights.target), inputs, rows)
      decoded = jitted(gamma, packed)(weights, inputs, rows)
      unequal = decoded.tokens != plain.tokens
      different += int(unequal.any(axis=1).sum())
      texts += batch
      np.testing.assert_array_equal(
          decoded.counts.emitted, plain.counts.emitted
      )
      counts[kind] += np.asarray(decoded.counts.accept_counts).sum(axis=0)
      if kind == "same":
        np.testing.assert_array_equal(
            decoded.counts.accepted, decoded.counts.tested
        )
    last = np.asarray(plain.tokens)[np.arange(batch), rows.limit - 1]
    ended += int((last == 0).sum())
  return texts, different, ended, counts


def check(gamma, packed, batch):
  texts, different, ended, counts = compare(gamma, packed, batch)
  assert different == 0
  assert texts == 3 * PAIRS * batch
  # The comparison is worth something: many texts end before their limit, and
  # the noisy draft makes blocks of every number of accepted tokens.
  assert ended > PAIRS * batch / 20
  assert (counts["noisy"][: min(gamma, 4) + 1] > 0).all()
  assert counts["other"][0] > counts["other"][1:].sum()


@pytest.mark.parametrize("gamma", [1, 2, 5, 16])
def test_t5(gamma):
  check(gamma, True, BATCH)


@pytest.mark.slow
@pytest.mark.parametrize("gamma", GAMMAS)
def test_t5_alone_in_t5x_layout(gamma):
  check(gamma, False, 1)


@pytest.mark.slow
@pytest.mark.parametrize("gamma", sorted({*GAMMAS} - {1, 2, 5, 16}))
def test_t5_other_gammas(gamma):
  check(gamma, True, BATCH)


def test_plain_is_argmax_of_the_full_forward_pass():
  config, _ = toy_models.tiny_t5(0, **LAYERS)
  forward = jax.jit(network.build(config).apply)
  inputs, rows = task_of(0, 3, BATCH)
  for seed in range(4):
    params = pair_of(seed, False, "same").target
    plain = jitted(0, False)(Weights(params), inputs, rows)
    tokens = np.zeros((BATCH, MAX_LENGTH + 1), "int32")
    tokens[:, 1 : PROMPT + 1] = rows.prompt
    visible = jnp.ones(tokens.shape, "int32")
    known = np.asarray((rows.prompt != 0).sum(axis=1))
    for index in range(MAX_LENGTH):
      logits = forward({"params": params}, inputs, tokens, visible)
      best = np.asarray(logits[:, index].argmax(axis=-1))
      done = (tokens == EOS_ID).any(axis=1) | (index >= rows.limit)
      best = np.where(done, 0, best)
      tokens[:, index + 1] = np.where(index < known, tokens[:, index + 1], best)
    np.testing.assert_array_equal(plain.tokens, tokens[:, 1:])


@functools.cache
def jitted_tables(gamma):
  scorer = toy_models.TableScorer(8)
  models = Models(scorer, ModelDraft(scorer, gamma) if gamma else None)
  settings = toy_models.settings(MAX_LENGTH, 8, greedy=True)
  return jax.jit(
      functools.partial(decoding.decode, models, settings),
      compiler_options={"xla_backend_optimization_level": 0},
  )


@pytest.mark.parametrize("gamma", GAMMAS)
def test_tables(gamma):
  rng = np.random.default_rng(gamma)
  target = rng.normal(size=(64, 1021, 8)).astype("float32")
  agree = rng.random((64, 1021, 1)) < 0.7
  draft = np.where(agree, target, target[::-1])
  _, rows = task_of(gamma, gamma, 1024, vocab=8)
  inputs = jnp.asarray(rng.integers(64, size=(1024, 1)), "int32")
  plain = jitted_tables(0)(Weights(target), inputs, rows)
  decoded = jitted_tables(gamma)(Weights(target, draft), inputs, rows)
  np.testing.assert_array_equal(decoded.tokens, plain.tokens)
  np.testing.assert_array_equal(decoded.counts.emitted, plain.counts.emitted)
  assert (decoded.counts.accept_counts.sum(axis=0)[:5] > 0).all()

"""Blocks appended to a cache give the logits of the full forward pass."""

import functools
import itertools

import jax
import numpy as np
import pytest
import toy_models
from jax import numpy as jnp

from spec_t5x import attention, network

pytestmark = pytest.mark.usefixtures("quick_compilation")

VOCAB, TEXT, ROWS = 16, 6, 3
# Tokens that each row has read before the six under test: rows stand at
# different indices, and shorter ones have stale keys ahead of them.
BEFORE = np.array([0, 2, 5])
LENGTH = 5 + TEXT

MODELS = {
    "encoder-decoder": dict(),
    "packed": dict(pack=True),
    "decoder-only": dict(num_encoder_layers=0),
    "T5 1.0": dict(mlp_activations=("relu",), logits_via_embedding=True),
}


def compositions(total):
  """All ways to write a number as a sum of numbers from 1 on, in order."""
  for cuts in itertools.product([False, True], repeat=total - 1):
    ends = [place + 1 for place, cut in enumerate(cuts) if cut] + [total]
    yield np.diff([0, *ends]).tolist()


@functools.cache
def model(name):
  """Scorer, jitted `extend` of its parameters and context, inputs, texts."""
  changes = MODELS[name]
  config, params = toy_models.tiny_t5(1, **changes)
  scorer = network.T5Scorer(config)
  rng = np.random.default_rng(0)
  inputs = jnp.asarray(rng.integers(2, VOCAB, (ROWS, 7)), "int32")
  inputs = inputs.at[1, 4:].set(0)
  tokens = jnp.asarray(rng.integers(2, VOCAB, (ROWS, LENGTH)), "int32")
  extend = jax.jit(scorer.extend)
  context = jax.jit(scorer.start)(params, inputs)
  extend = functools.partial(extend, params, context)
  return scorer, extend, inputs, tokens


@functools.cache
def full_logits(name):
  """Logits of the tokens under test by a forward pass over whole texts."""
  changes = {k: v for k, v in MODELS[name].items() if k != "pack"}
  config, params = toy_models.tiny_t5(1, **changes)
  _, _, inputs, tokens = model(name)
  arguments = [tokens, jnp.ones_like(tokens)]
  if not config.decoder_only:
    arguments.insert(0, inputs)
  logits = jax.jit(network.build(config).apply)({"params": params}, *arguments)
  places = BEFORE[:, None] + np.arange(TEXT)
  return np.take_along_axis(np.asarray(logits), places[..., None], axis=1)


def prefilled(name, garbage=0.0):
  """A cache that holds what stands before, and stale keys behind it."""
  scorer, extend, _, tokens = model(name)
  cache = scorer.init_cache(ROWS, LENGTH)
  cache = jax.tree.map(lambda x: x + garbage, cache)
  known = np.arange(5) < BEFORE[:, None]
  block = jnp.where(known, tokens[:, :5], 3)
  return extend(cache, block, jnp.zeros(ROWS, "int32"))[1]


def read(name, sizes, cache):
  """Logits and cache of the six tokens, read in blocks of these sizes."""
  _, extend, _, tokens = model(name)
  logits, index = [], jnp.asarray(BEFORE, "int32")
  for size in sizes:
    places = index[:, None] + jnp.arange(size)
    block = jnp.take_along_axis(tokens, places, axis=1)
    new, cache = extend(cache, block, index)
    logits.append(new)
    index = index + size
  return np.concatenate(logits, axis=1), cache


@pytest.mark.parametrize("name", MODELS)
def test_every_split_into_blocks(name):
  splits = list(compositions(TEXT))
  assert len(splits) == 32
  expected = full_logits(name)
  assert np.ptp(expected) > 5
  for sizes in splits:
    logits, _ = read(name, sizes, prefilled(name))
    np.testing.assert_allclose(logits, expected, atol=2e-5, err_msg=str(sizes))


@pytest.mark.parametrize("name", ["encoder-decoder", "packed"])
def test_what_stands_in_a_fresh_cache_does_not_matter(name):
  clean, _ = read(name, [2, 4], prefilled(name))
  dirty, _ = read(name, [2, 4], prefilled(name, garbage=100.0))
  np.testing.assert_array_equal(clean, dirty)


@pytest.mark.parametrize("name", ["encoder-decoder", "packed"])
def test_rewinding_overwrites(name):
  """Rejected tokens leave no trace, in the logits or in the cache."""
  _, extend, _, _ = model(name)
  fresh, fresh_cache = read(name, [3, 3], prefilled(name))
  index = jnp.asarray(BEFORE, "int32")
  wrong = jnp.full((ROWS, 6), 9)
  _, cache = extend(prefilled(name), wrong, index)
  again, cache = read(name, [3, 3], cache)
  np.testing.assert_array_equal(again, fresh)
  jax.tree.map(np.testing.assert_array_equal, cache, fresh_cache)


def test_rows_rewind_by_different_amounts():
  """Recipe of the row that shares a batch with others: accepts [3, 1, 0]."""
  name = "encoder-decoder"
  _, extend, _, tokens = model(name)
  index = jnp.asarray(BEFORE, "int32")
  drafted = jnp.take_along_axis(tokens, BEFORE[:, None] + np.arange(4), axis=1)
  kept = np.array([4, 2, 1])
  wrong = np.arange(4) >= kept[:, None]
  _, cache = extend(prefilled(name), jnp.where(wrong, 9, drafted), index)
  rest = jnp.take_along_axis(
      tokens, (BEFORE + kept)[:, None] + np.arange(2), axis=1
  )
  logits, _ = extend(cache, rest, index + kept)
  expected = np.take_along_axis(
      full_logits(name), (kept[:, None] + np.arange(2))[..., None], axis=1
  )
  np.testing.assert_allclose(logits, expected, atol=2e-5)


def test_control_adding_to_the_cache_is_found(monkeypatch):
  """T5X adds to its cache instead of overwriting."""
  _, _, inputs, tokens = model("encoder-decoder")
  config, params = toy_models.tiny_t5(1)
  scorer = network.T5Scorer(config)
  context = scorer.start(params, inputs)
  overwrite = attention.write_block

  def add(buffer, *arguments):
    return buffer + overwrite(jnp.zeros_like(buffer), *arguments)

  def rewound():
    cache = scorer.init_cache(ROWS, LENGTH)
    index = jnp.asarray(BEFORE, "int32")
    for block in (tokens[:, 1:2], tokens[:, :1]):
      logits, cache = scorer.extend(params, context, cache, block, index)
    return logits

  expected = rewound()
  monkeypatch.setattr(
      attention, "write_block", lambda *of, axis: add(*of, axis)
  )
  assert np.abs(rewound() - expected).max() > 0.1


@pytest.mark.parametrize("name", MODELS)
def test_logits_of_one_place_only(name):
  scorer, extend, _, tokens = model(name)
  block, index = tokens[:, :3], jnp.zeros(ROWS, "int32")
  only = jnp.arange(ROWS) % 3
  logits, whole = extend(scorer.init_cache(ROWS, LENGTH), block, index)
  one, cache = extend(scorer.init_cache(ROWS, LENGTH), block, index, only)
  assert one.shape == (ROWS, 1, VOCAB)
  expected = jnp.take_along_axis(logits, only[:, None, None], axis=1)
  np.testing.assert_allclose(one, expected, atol=2e-5)
  jax.tree.map(np.testing.assert_array_equal, cache, whole)
  assert np.abs(one - logits[:, :1]).max() > 0.1

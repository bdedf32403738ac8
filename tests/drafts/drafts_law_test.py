"""Every draft leaves the target's law and its greedy tokens as they are.

The laws are enumerated as in `decoding_law_test`: no tolerance, no false
alarm. A rule that accepts everything must fail with the same draft, so no
draft passes for want of proposals.
"""

import functools
import itertools
from unittest import mock

import numpy as np
import pytest
import toy_laws
import toy_models
from enumeration import Cells, Script, is_exact, output_laws, text_law
from jax import numpy as jnp
from toy_laws import FLAT, SKEWED, TWO, VOCAB, ToyLaws

from spec_t5x import network, verification
from spec_t5x.decoding_types import Models, Weights
from spec_t5x.drafts import (
    ModelDraft,
    NgramScorer,
    NgramTable,
    PromptLookupDraft,
)
from spec_t5x.drafts.ngram_table import Level

# A draft of `FLAT`, `SKEWED` (draft cells 4) or `TWO` (draft cells 2), in any
# order of the tokens: accept cells 2, next-token cells 4.
QUARTERS = ToyLaws(((FLAT, FLAT), (SKEWED, SKEWED)))
HALVES = ToyLaws(((FLAT, FLAT),))
# For point masses: accept cells 2, next-token cells 2.
COINS = tuple(ToyLaws(((TWO, TWO),), seed) for seed in range(2))


def level_of(contexts, laws, rng):
  """A level whose contexts have laws of their own, nothing backed off."""
  drawn = [rng.permutation(laws[rng.integers(len(laws))]) for _ in contexts]
  probs = np.array(drawn, "float32")
  tokens = [np.flatnonzero(law) for law in probs]
  return Level(
      keys=np.array(contexts, "uint32"),
      backoff=np.zeros(len(contexts), "float32"),
      start=np.cumsum([0, *map(len, tokens)]).astype("int32"),
      tokens=np.concatenate(tokens).astype("int32"),
      probs=probs[probs > 0],
  )


def toy_table(order, laws, seed=0):
  """A table that knows half of all contexts."""
  rng = np.random.default_rng(seed)
  half = lambda number: np.sort(rng.permutation(number)[: number // 2])
  levels = [
      level_of(half(VOCAB**length), laws, rng) for length in range(1, order)
  ]
  unigram = rng.permutation(np.array(laws[-1], "float32"))
  return NgramTable(unigram, tuple(levels), VOCAB if levels else 0)


def ngram_is_exact(order, laws, target, gamma, max_length, cells, **changes):
  """Whether the loop has the target's law with a toy table as the draft."""
  table, _ = toy_laws.tables([target], max_length + gamma)
  temperature = changes.pop("temperature", 1.0)
  outputs = output_laws(
      Models(
          toy_models.TableScorer(VOCAB), ModelDraft(NgramScorer(VOCAB), gamma)
      ),
      toy_models.settings(max_length, VOCAB, **changes),
      Weights(table * temperature, toy_table(order, laws)),
      Script.of(cells, gamma, max_length),
      temperature,
  )
  return outputs == [text_law(target.target, max_length)]


@pytest.mark.parametrize("order", [2, 3])
def test_ngrams_of_one_token(order):
  laws = [FLAT, SKEWED]
  assert ngram_is_exact(order, laws, QUARTERS, 1, 3, Cells(4, 2, 4))


@pytest.mark.parametrize(
    ("order", "temperature"), [(1, 1.0), (2, 0.5), (3, 2.0)]
)
def test_ngrams_of_two_tokens(order, temperature):
  assert ngram_is_exact(
      order, [TWO], HALVES, 2, 3, Cells(2, 2, 4), temperature=temperature
  )


def test_ngrams_accepted_without_a_test():
  """A control."""
  always = lambda p, q, tokens, lenience: jnp.ones(tokens.shape)
  with mock.patch.object(verification, "accept_probs", always):
    assert not ngram_is_exact(3, [FLAT, SKEWED], QUARTERS, 1, 3, Cells(4, 2, 4))


class ToyLookup(PromptLookupDraft):
  """Copies from inputs of its own: those of the enumeration say nothing."""

  def __init__(self, scorer, gamma, max_ngram=2):
    del scorer
    super().__init__(gamma, max_ngram)

  def start(self, params, inputs):
    del params
    source = jnp.array([2, 3, 3, 2, 1, 0], "int32")
    return jnp.tile(source, (len(inputs), 1))


@pytest.mark.parametrize("block_verification", [False, True])
def test_prompt_lookup(block_verification):
  assert is_exact(
      COINS,
      2,
      4,
      Cells(1, 2, 2),
      make_draft=ToyLookup,
      block_verification=block_verification,
  )


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_prompt_lookup_at_other_temperatures(temperature):
  assert is_exact(
      COINS[:1],
      2,
      3,
      Cells(1, 2, 2),
      make_draft=ToyLookup,
      temperature=temperature,
  )


def test_prompt_lookup_accepted_without_a_test():
  """A control."""
  always = lambda p, q, tokens, lenience: jnp.ones(tokens.shape)
  with mock.patch.object(verification, "accept_probs", always):
    assert not is_exact(COINS, 2, 4, Cells(1, 2, 2), make_draft=ToyLookup)


LENGTH = 20
CONFIG = dict(num_encoder_layers=1, num_decoder_layers=1)


@functools.cache
def greedy(draft=None, order=None):
  """Decodes of 64 texts by a tiny T5, with a table of the plain ones."""
  config, params = toy_models.tiny_t5(0, eos_scale=2.0, **CONFIG)
  params = toy_models.noisy(params, 0, 0.5)
  scorer = network.T5Scorer(config)
  rng = np.random.default_rng(0)
  inputs = rng.integers(2, config.vocab_size, (64, 8))
  rows = toy_models.rows(64, rng.integers(1, LENGTH + 1, 64), 0.0)
  settings = toy_models.settings(LENGTH, config.vocab_size, greedy=True)
  table = None
  if order:
    tokens, emitted = greedy().tokens, greedy().counts.emitted
    texts = [row[:n] for row, n in zip(tokens, emitted, strict=True)]
    table = NgramTable.build(texts, order, config.vocab_size)
  return toy_models.run(
      Models(scorer, draft), settings, Weights(params, table), inputs, rows
  )


@pytest.mark.parametrize(
    ("draft", "order"),
    [
        (ModelDraft(NgramScorer(16), 1), 1),
        (ModelDraft(NgramScorer(16), 3), 2),
        (ModelDraft(NgramScorer(16), 3), 3),
        (PromptLookupDraft(5, 2), None),
    ],
)
def test_greedy_tokens_are_the_targets(draft, order):
  drafted, plain = greedy(draft, order), greedy()
  np.testing.assert_array_equal(drafted.tokens, plain.tokens)
  np.testing.assert_array_equal(drafted.counts.emitted, plain.counts.emitted)
  assert len(np.unique(plain.tokens, axis=0)) > 30
  # Something was proposed at every place, and some of it was right.
  accepted = drafted.counts.accepted.sum(axis=0)
  assert (accepted > 0).all()
  assert (accepted < drafted.counts.tested.sum(axis=0)).any()


def test_half_of_the_contexts_are_known():
  table = toy_table(3, [FLAT, SKEWED])
  pairs = np.array(list(itertools.product(range(VOCAB), repeat=2)))
  laws = np.asarray(table.probs(jnp.asarray(pairs)))
  np.testing.assert_array_equal(laws.sum(axis=1), 1)
  keys = table.levels[1].keys
  assert len({tuple(law) for law in laws[keys]}) > 3
  others = np.setdiff1d(np.arange(VOCAB**2), keys)
  assert set(table.levels[0].keys) != set(range(VOCAB))
  backed = {tuple(law) for law in laws[others]}
  assert tuple(table.unigram) in backed

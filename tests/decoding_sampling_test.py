"""The loop with real random keys: chi-square against the exact law.

False alarm: every test rejects with probability `FALSE_ALARM` for a fresh
seed; with the seed fixed its outcome is fixed too. The same statistic has to
reject the faults below.
"""

import functools
from unittest import mock

import jax
import numpy as np
import pytest
import scipy.stats
import toy_models
from enumeration import text_law
from jax import numpy as jnp

from spec_t5x import decoding, inputs
from spec_t5x.decoding_types import Models, Rows, Weights
from spec_t5x.drafts.model import ModelDraft

FALSE_ALARM = 1e-6
VOCAB, LENGTH, GAMMA, NUM_DECODES = 4, 3, 2, 2
CHUNK, CHUNKS = 25_000, 4  # 2e5 texts, two of each input


@functools.cache
def laws_of(name):
  """Laws that no rounding to quarters would fit; EOS is the rarest token."""

  @functools.cache
  def law(prefix):
    rng = np.random.default_rng([*name.encode(), *(t + 1 for t in prefix)])
    weights = rng.dirichlet([1.0] * VOCAB)
    smallest = weights.argmin()
    weights[[1, smallest]] = weights[[smallest, 1]]
    return tuple(weights.tolist())

  return law


def expected_law():
  """The law of text codes [64], digits in base 4."""
  law = np.zeros(VOCAB**LENGTH)
  for text, prob in text_law(laws_of("target"), LENGTH).items():
    law[code_of(np.array(text))] += float(prob)
  return law


def code_of(tokens):
  return tokens @ VOCAB ** np.arange(LENGTH)


def independent_keys(ids):
  return inputs.row_keys(0, ids, NUM_DECODES)


def keys_of_the_input(ids):
  """A fault: both decodes of an input get the same numbers."""
  return jnp.repeat(inputs.row_keys(0, ids, 1), NUM_DECODES)


def draw(keys_of=independent_keys, block_verification=False):
  """Text codes [inputs, decodes] of many decodes."""
  scorer = toy_models.TableScorer(VOCAB)
  models = Models(scorer, ModelDraft(scorer, GAMMA))
  weights = Weights(
      *(
          toy_models.table_of(laws_of(name), VOCAB, LENGTH + GAMMA)
          for name in ("target", "draft")
      )
  )
  settings = toy_models.settings(
      LENGTH,
      VOCAB,
      num_decodes=NUM_DECODES,
      block_verification=block_verification,
  )

  @jax.jit
  def decode(weights, keys):
    batch = NUM_DECODES * CHUNK
    rows = Rows(
        prompt=jnp.zeros((batch, 0), "int32"),
        limit=jnp.full(batch, LENGTH),
        temperature=jnp.ones(batch),
        keys=keys,
    )
    inputs = jnp.zeros((CHUNK, 1), "int32")
    return decoding.decode(models, settings, weights, inputs, rows)

  codes = []
  for chunk in range(CHUNKS):
    ids = np.arange(chunk * CHUNK, (chunk + 1) * CHUNK, dtype="uint32")
    tokens = np.asarray(decode(weights, keys_of(ids)).tokens)
    codes.append(code_of(tokens.reshape(CHUNK, NUM_DECODES, LENGTH)))
  return np.concatenate(codes)


def p_value(counts, law):
  """Pearson's test; classes of fewer than 10 expected texts are pooled."""
  assert counts[law == 0].sum() == 0
  expected = law * counts.sum()
  rare = expected < 10
  pool = lambda x: np.append(x[~rare], x[rare].sum())
  counts, expected = pool(counts), pool(expected)
  if not expected[-1]:
    counts, expected = counts[:-1], expected[:-1]
  return scipy.stats.chisquare(counts, expected, sum_check=False).pvalue


def text_p_value(codes):
  """Whether the texts have the target's law."""
  law = expected_law()
  return p_value(np.bincount(codes.ravel(), minlength=law.size), law)


def pair_p_value(codes):
  """Whether the two decodes of an input are independent, too."""
  law = expected_law()
  pairs = codes[:, 0] * law.size + codes[:, 1]
  counts = np.bincount(pairs, minlength=law.size**2)
  return p_value(counts, np.outer(law, law).ravel())


@pytest.mark.parametrize("block_verification", [False, True])
def test_law_and_independence(block_verification):
  codes = draw(block_verification=block_verification)
  assert codes.size == 200_000
  assert text_p_value(codes) > FALSE_ALARM
  assert pair_p_value(codes) > FALSE_ALARM


def test_control_decodes_share_a_key():
  codes = draw(keys_of_the_input)
  assert text_p_value(codes[:, 0]) > FALSE_ALARM
  assert pair_p_value(codes) < FALSE_ALARM


original_words = decoding._random_words


def same_words_every_iteration(keys, iteration, gamma):
  return original_words(keys, jnp.zeros_like(iteration), gamma)


def accept_reuses_the_drafts_words(keys, iteration, gamma):
  words = original_words(keys, iteration, gamma)
  reused = (words.draft[..., 1] >> 8).astype("float32") * 2.0**-24
  return words._replace(accept=reused)


def next_token_reuses_the_drafts_words(keys, iteration, gamma):
  words = original_words(keys, iteration, gamma)
  return words._replace(next_token=words.draft[:, 0])


@pytest.mark.parametrize(
    "fault",
    [
        same_words_every_iteration,
        accept_reuses_the_drafts_words,
        next_token_reuses_the_drafts_words,
    ],
)
def test_control_numbers_used_twice(fault):
  with mock.patch.object(decoding, "_random_words", fault):
    codes = draw()
  assert text_p_value(codes) < FALSE_ALARM

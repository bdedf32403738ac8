"""Sampled texts of the shipped pair have the target's law, token by token.

The enumeration tests prove it for tables; here it is seen on real models and
texts. Given a text, the target's law at each of its tokens is known by teacher
forcing. If tokens are drawn from these laws, whatever the draft,

- u = F(x - 1) + v p(x), with v uniform, is uniform (Brockwell 2007), F being
  the cumulative law over ids; its ten equal bins are compared by chi-square;
- log p(x) plus the entropy of the law has mean 0.

Either says no with a probability of 1e-4 although all is well. The controls,
texts of the draft alone and of lenient decoding, must be found out.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import spec_t5x
from spec_t5x import corpora, network, shortlist

# Quantiles of chi-square with 9 degrees of freedom, and of |normal|, at 1e-4.
CHI_SQUARE_9, NORMAL = 33.72, 3.89
TEXTS, GAMMA, LONGEST = 96, 5, 48


@functools.cache
def models():
  names = "shipped:target", "shipped:small"
  return tuple(map(spec_t5x.load, names))


@functools.cache
def sources():
  pairs = corpora.load_pairs("ende", "test", "lohelp:")
  vocabulary = models()[0].vocabulary
  ids = [[*vocabulary.encode(pair.source), 1] for pair in pairs]
  return tuple(tuple(text) for text in ids if len(text) <= 32)[:TEXTS]


def decode(target, draft, **settings):
  """Texts at temperature 1, token ids."""
  decoder = spec_t5x.Decoder(
      target,
      draft,
      gamma=GAMMA if draft else 0,
      temperature=1.0,
      max_decode_steps=LONGEST,
      vocab_size=target.vocabulary.num_ids,
      **settings,
  )
  return decoder(list(map(list, sources()))).tokens


@jax.jit
def laws(params, inputs, shifted, tokens):
  """Probability of each token, of the ids below it, and surprise + entropy."""
  target = models()[0]
  logits = network.build(target.config).apply(
      {"params": params}, inputs, shifted, tokens
  )
  real = jnp.arange(logits.shape[-1]) < target.vocabulary.num_ids
  log_probs = jax.nn.log_softmax(jnp.where(real, logits, -jnp.inf))
  probs = jnp.exp(log_probs)
  at = lambda x: jnp.take_along_axis(x, tokens[..., None], axis=-1)[..., 0]
  entropy = -jnp.sum(jnp.where(real, probs * log_probs, 0.0), axis=-1)
  below = at(jnp.cumsum(probs, axis=-1)) - at(probs)
  return at(probs), below, at(log_probs) + entropy


def statistics(texts):
  """Chi-square of the bins of u, and mean of log p + entropy over its error."""
  inputs, tokens = (
      np.zeros((TEXTS, length), "int32") for length in (32, LONGEST)
  )
  for row, (source, text) in enumerate(zip(sources(), texts, strict=True)):
    inputs[row, : len(source)], tokens[row, : len(text)] = source, text
  shifted = np.pad(tokens, ((0, 0), (1, 0)))[:, :-1]
  probs, below, centred = laws(models()[0].params, inputs, shifted, tokens)
  known = tokens > 0
  v = np.random.default_rng(0).uniform(size=known.shape)
  counts = np.histogram((below + v * probs)[known], 10, (0, 1))[0]
  expected = counts.sum() / 10
  centred = np.asarray(centred)[known]
  deviation = centred.mean() / (centred.std() / np.sqrt(centred.size))
  return ((counts - expected) ** 2 / expected).sum(), abs(deviation)


@pytest.mark.parametrize(
    "block_verification", [False, pytest.param(True, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("listed", [None, 256])
def test_tokens_follow_the_targets_law(block_verification, listed):
  target, draft = models()
  if listed:
    ids = shortlist.load(shortlist.find("shipped:ende"))
    draft = shortlist.shorten(draft, ids[:listed])
  texts = decode(target, draft, block_verification=block_verification)
  chi_square, deviation = statistics(texts)
  assert chi_square < CHI_SQUARE_9
  assert deviation < NORMAL


@pytest.mark.parametrize(
    "control", ["draft", pytest.param("lenient", marks=pytest.mark.slow)]
)
def test_controls_are_found_out(control):
  target, draft = models()
  texts = (
      decode(draft, None)
      if control == "draft"
      else decode(target, draft, lenience=0.1)
  )
  chi_square, deviation = statistics(texts)
  assert chi_square > CHI_SQUARE_9 or deviation > NORMAL

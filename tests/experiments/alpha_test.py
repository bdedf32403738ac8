"""Alpha against the formulas, written out in numpy on full forward passes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy_models

from spec_t5x import network
from spec_t5x.drafts import NgramTable
from spec_t5x.experiments import alpha
from spec_t5x.model import Model

SIZE, TEXTS, LENGTH = 16, 40, 7


@functools.cache
def model(noise=0.0):
  config, params = toy_models.tiny_t5(
      0, num_encoder_layers=1, num_decoder_layers=1
  )
  return Model("tiny", config, toy_models.noisy(params, 0, noise))


@functools.cache
def table():
  texts = np.random.default_rng(1).integers(2, SIZE, (9, 30))
  return NgramTable.build(texts, 3, SIZE)


def ragged(seed):
  """Rows of 1 to 7 tokens, the last one EOS."""
  rng = np.random.default_rng(seed)
  return [
      [*rng.integers(2, SIZE, rng.integers(LENGTH)).tolist(), 1]
      for _ in range(TEXTS)
  ]


def logits_of(draft, sources, texts):
  """Logits of every token of the texts, padded."""
  pad = lambda rows: np.array([row + [0] * (LENGTH - len(row)) for row in rows])
  tokens = np.pad(pad(texts), ((0, 0), (1, 0)))[:, :-1]
  if isinstance(draft, NgramTable):
    before = np.pad(tokens, ((0, 0), (1, 0)))[:, :-1]
    return np.log(draft.probs(np.stack([before, tokens], axis=-1)))
  read = (pad(sources), tokens, np.ones_like(tokens))
  return np.asarray(
      network.build(draft.config).apply(
          {"params": draft.params}, *map(jnp.asarray, read)
      )
  )


def softmax(logits):
  weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
  return weights / weights.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("kind", ["model", "table"])
@pytest.mark.parametrize(
    ("temperature", "lenience"),
    [(1.0, 1.0), (0.5, 0.3), (0.0, 1.0), (0.0, 0.05)],
)
def test_overlap_of_every_token(kind, temperature, lenience):
  target, draft = model(), table() if kind == "table" else model(0.3)
  sources, texts = ragged(2), ragged(3)
  rows = alpha.overlaps(target, draft, sources, texts, temperature, lenience)
  p, q = (logits_of(each, sources, texts) for each in (target, draft))
  if temperature:
    p, q = softmax(p / temperature), softmax(q / temperature)
    expected = np.minimum(p / lenience, q).sum(axis=-1)
  else:
    best = q.argmax(axis=-1)[..., None]
    chosen = np.take_along_axis(softmax(p), best, axis=-1)[..., 0]
    expected = chosen >= lenience * softmax(p).max(axis=-1)
  pooled = []
  for row, text, values in zip(rows, texts, expected, strict=True):
    assert row["tokens"] == len(text)
    np.testing.assert_allclose(row["overlap"], values[: len(text)], atol=2e-5)
    pooled += row["overlap"]
  assert 0.01 < np.mean(pooled) < 0.99


def test_a_model_against_itself():
  for temperature in (0.0, 1.0):
    rows = alpha.overlaps(model(), model(), ragged(2), ragged(3), temperature)
    values = np.concatenate([row["overlap"] for row in rows])
    np.testing.assert_allclose(values, 1, atol=1e-5)


def nucleus(probs, mass):
  """The most probable tokens up to a mass, one position at a time."""
  kept = np.zeros_like(probs)
  for place in np.ndindex(probs.shape[:-1]):
    order = np.argsort(-probs[place])
    count = np.searchsorted(np.cumsum(probs[place][order]), mass) + 1
    chosen = order[:count]
    kept[place][chosen] = probs[place][chosen] / probs[place][chosen].sum()
  return kept


@functools.cache
def decoder_only(noise=0.0):
  config, params = toy_models.tiny_t5(
      0, num_encoder_layers=0, num_decoder_layers=1
  )
  return Model("tiny", config, toy_models.noisy(params, 0, noise))


def test_prompts_and_a_nucleus():
  """Overlap behind the prompts alone, each as long as its own."""
  target, draft = decoder_only(), decoder_only(0.3)
  prompts = [row[:-1] + [5] for row in ragged(2)]
  texts = ragged(3)
  rows = alpha.overlaps(target, draft, prompts, texts, 1.0, top_p=0.8)
  whole = np.zeros((TEXTS, 2 * LENGTH), np.int32)
  for line, prompt, text in zip(whole, prompts, texts, strict=True):
    line[: len(prompt) + len(text)] = [*prompt, *text]
  shifted = np.pad(whole, ((0, 0), (1, 0)))[:, :-1]
  laws = []
  for each in (target, draft):
    apply = jax.jit(network.build(each.config).apply)
    logits = apply({"params": each.params}, shifted, np.ones_like(whole))
    laws.append(nucleus(softmax(np.asarray(logits, np.float64)), 0.8))
  expected = np.minimum(*laws).sum(axis=-1)
  pooled = []
  for row, prompt, text, values in zip(
      rows, prompts, texts, expected, strict=True
  ):
    assert row["tokens"] == len(text)
    own = values[len(prompt) : len(prompt) + len(text)]
    np.testing.assert_allclose(row["overlap"], own, atol=2e-5)
    pooled += row["overlap"]
  assert 0.01 < np.mean(pooled) < 0.99

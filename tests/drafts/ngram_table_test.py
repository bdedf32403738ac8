"""Tests of n-gram tables: counts by hand, real text, files, damage."""

import collections
import functools
import re

import numpy as np
import pytest
from jax import numpy as jnp
from safetensors import numpy as safetensors_numpy

from spec_t5x import corpora, vocabulary
from spec_t5x.drafts import NgramTable

TEXTS = [[3, 4, 3, 4, 2, 1], [3, 4, 4, 1], [4, 1]]
VOCAB = 6


def law(texts, order, vocab_size, context):
  """The documented formula, read off a list of texts."""
  if order == 0:
    return np.full(vocab_size, 1 / vocab_size)
  lower = law(texts, order - 1, vocab_size, context)
  size = order - 1
  counts = collections.Counter()
  for text in texts:
    padded = [0] * size + text
    for place in range(size, len(padded)):
      if padded[place - size : place] == list(context)[2 - size :]:
        counts[padded[place]] += 1
  if not counts:
    return lower
  kinds, total = len(counts), counts.total()
  seen = np.array([counts[token] for token in range(vocab_size)])
  return (seen + kinds * lower) / (total + kinds)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_every_law_is_the_formula(order):
  table = NgramTable.build(iter(TEXTS), order, VOCAB)
  assert (table.order, table.vocab_size) == (order, VOCAB)
  pairs = [(a, b) for a in range(VOCAB) for b in range(VOCAB)]
  laws = table.probs(jnp.asarray(pairs))
  expected = [law(TEXTS, order, VOCAB, pair) for pair in pairs]
  np.testing.assert_allclose(laws, expected, rtol=2e-6)
  np.testing.assert_allclose(laws.sum(axis=1), 1, rtol=1e-6)
  assert laws.min() > 0
  # The laws differ as much as they should.
  assert len(np.unique(np.asarray(expected), axis=0)) > 2 * (order - 1)


def test_cut_continuations_go_to_the_lower_order():
  table = NgramTable.build(TEXTS, 2, VOCAB, max_continuations=1)
  probs = np.asarray(table.probs(jnp.array([[0, 4]])))[0]
  unigram = law(TEXTS, 1, VOCAB, ())
  # 4 is followed by 1 twice and by 2, 3 and 4 once: 9 = 5 + 4 kinds.
  expected = unigram * 7 / 9
  expected[1] += 2 / 9
  np.testing.assert_allclose(probs, expected, rtol=1e-6)
  assert table.window == 1


def test_largest_vocabulary():
  size = 1 << 16
  table = NgramTable.build([[size - 1, size - 2, 7, 1]], 3, size)
  probs = table.probs(jnp.array([[size - 1, size - 2]]))
  assert int(probs.argmax()) == 7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(order=0), "`order` must be one of (1, 2, 3). Got 0."),
        (dict(order=4), "`order` must be one of (1, 2, 3). Got 4."),
        (dict(vocab_size=65537), "between 2 and 65536. Got 65537."),
        (dict(vocab_size=4), "must hold ids in [0, 4). Got 0 to 4."),
        (dict(max_continuations=0), "must be at least 1. Got 0."),
        (dict(token_sequences=[]), "must hold a token. Got none."),
        (dict(token_sequences=[[], []]), "must hold a token. Got none."),
        (dict(token_sequences=[[-1]]), "must hold ids in [0, 6). Got -1 to 0."),
    ],
)
def test_bad_arguments(changes, message):
  arguments = dict(token_sequences=TEXTS, order=2, vocab_size=VOCAB)
  with pytest.raises(ValueError, match=re.escape(message)):
    NgramTable.build(**{**arguments, **changes})


@functools.cache
def german(split, texts):
  pieces = vocabulary.Vocabulary()
  pairs = corpora.load_pairs("ende", split)[:texts]
  return [[*pieces.encode(pair.target), 1] for pair in pairs]


def test_higher_orders_predict_held_out_text_better():
  held_out = german("validation", 100)
  contexts = [
      pair
      for text in held_out
      for pair in zip([0, 0, *text], [0, *text[:-1]], strict=False)
  ]
  tokens = np.concatenate(held_out)
  entropies = []
  for order in (1, 2, 3):
    table = NgramTable.build(german("train", 8000), order, 8000)
    probs = np.asarray(table.probs(jnp.asarray(contexts)))
    chosen = probs[np.arange(len(tokens)), tokens]
    entropies.append(-np.log(chosen).mean())
    # A table that knew nothing would need ln(8000) = 8.99 nats.
  assert 8.99 > entropies[0] > entropies[1] + 0.5 > entropies[2] + 0.6


@pytest.mark.parametrize("order", [1, 3])
def test_saved_and_loaded(order, tmp_path):
  table = NgramTable.build(TEXTS, order, VOCAB)
  loaded = NgramTable.load(table.save(tmp_path / "new" / "table"))
  assert (loaded.order, loaded.window) == (order, table.window)
  pairs = jnp.asarray([(3, 4), (0, 3), (5, 5)])
  np.testing.assert_array_equal(loaded.probs(pairs), table.probs(pairs))


def damaged(name, change):
  """Arrays of a good file, one of them changed."""

  def damage(arrays):
    return arrays | {name: change(arrays[name])}

  return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda arrays: {}, "KeyError"),
        (damaged("2.tokens", lambda x: x + 5), "do not fit together"),
        (damaged("1.keys", lambda x: x[::-1].copy()), "do not fit together"),
        (damaged("1.probs", lambda x: x[1:]), "do not fit together"),
        (damaged("2.start", lambda x: x + 1), "do not fit together"),
    ],
)
def test_damaged_files(damage, message, tmp_path):
  path = NgramTable.build(TEXTS, 3, VOCAB).save(tmp_path / "table")
  arrays = damage(safetensors_numpy.load_file(path))
  metadata = {"format": "spec_t5x n-gram table", "order": "3"}
  safetensors_numpy.save_file(arrays, path, metadata)
  with pytest.raises(ValueError, match=f"is no n-gram table: .*{message}"):
    NgramTable.load(path)


def test_other_files(tmp_path):
  path = tmp_path / "other"
  path.write_bytes(b"not a table")
  with pytest.raises(ValueError, match="other is no n-gram table"):
    NgramTable.load(path)
  safetensors_numpy.save_file({"x": np.zeros(1)}, path)
  with pytest.raises(ValueError, match="its format is None"):
    NgramTable.load(path)

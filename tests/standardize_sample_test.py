"""`standardize.sample`: which tokens it draws, and from which law."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp
from measured_laws import law_from, words_below

from spec_t5x.standardize import sample, standardize

VOCAB = 32128  # T5's, padding included
CELL = 128  # tokens per cell of the sampler
draw = jax.jit(sample)
draw_many = jax.jit(jax.vmap(sample, in_axes=(None, 0)))


def random_law(seed, *shape, **settings):
  logits = np.random.default_rng(seed).normal(size=shape) * 2
  return standardize(jnp.asarray(logits, jnp.float32), **settings)


@jax.jit
def first_words_of_cells(probs):
  """First word that draws each cell but the first."""
  cells = jnp.arange(1, -(-len(probs) // CELL))
  cell_of = lambda words: draw_many(probs, pairs(words, 0)) // CELL
  return words_below(cell_of, cells)


@jax.jit
def first_words_inside(probs, cell, word):
  """First word that draws each token of a cell but its first one."""
  tokens = jnp.arange(1, CELL)
  token_of = lambda words: draw_many(probs, pairs(word, words)) - cell * CELL
  return words_below(token_of, tokens)


def pairs(cell_words, token_words):
  words = jnp.broadcast_arrays(cell_words, token_words)
  return jnp.stack(words, axis=-1).astype(jnp.uint32)


def float32_inversion_law(probs):
  """Law of the usual draw: count(cumsum <= u), u on the grid of 2**-23."""
  cumulative = np.asarray(jnp.cumsum(jnp.asarray(probs)), np.float64)
  below = np.ceil(np.minimum(cumulative, 1.0) * 2**23)
  below[-1] = 2**23
  return np.diff(np.append(0, below)) / 2**23


def total_variation(a, b):
  return np.abs(a - b).sum() / 2


def laws():
  rng = np.random.default_rng(7)
  zipf = 1.0 / np.arange(1, VOCAB + 1)
  holes = np.where(rng.random(VOCAB) < 0.5, 0.0, rng.random(VOCAB))
  head = np.full(VOCAB, 1e-9)
  head[-1] = 1.0
  return dict(
      flat=np.ones(VOCAB),
      zipf=zipf,
      peaked=np.exp(rng.normal(size=VOCAB) * 4),
      holes=holes,
      head_and_faint_tail=head,
      one_hot=1.0 * (np.arange(VOCAB) == 31999),
      unpadded_vocabulary=np.ones(32100),
      tiny=np.array([0.3, 0.0, 0.7]),
  )


@pytest.mark.parametrize('name', laws())
def test_law_of_sample_is_right_to_1e_6_in_total_variation(name):
  law = laws()[name]
  law = jnp.asarray(law / law.sum(), jnp.float32)
  exact = np.asarray(law, np.float64) / np.asarray(law, np.float64).sum()
  cells = np.pad(exact, (0, -len(exact) % CELL)).reshape(-1, CELL)

  first = np.asarray(first_words_of_cells(law))
  error = total_variation(law_from(first), cells.sum(axis=-1))
  inside = []
  last, heaviest = len(cells) - 1, int(cells.sum(axis=-1).argmax())
  for cell in {*range(0, len(cells), 25), last, heaviest}:
    mass = cells[cell].sum()
    if mass == 0:
      continue
    word = np.append(0, first)[cell]
    drawn = law_from(first_words_inside(law, cell, word))
    # Bisection cannot tell the last of the 2**32 words.
    assert drawn[cells[cell] == 0].max(initial=0) <= 2**-32
    inside.append(total_variation(drawn, cells[cell] / mass))
  # The error of the whole law is at most that of the cells plus the mean of
  # those inside the cells.
  assert error + max(inside) < 1e-6


def test_one_float32_uniform_would_fail_that_check():
  law = np.full(VOCAB, 1 / VOCAB, np.float32)
  error = total_variation(float32_inversion_law(law), 1 / VOCAB)
  assert error > 1e-4


EXTREME_WORDS = [0, 1, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1]


# public bug: u = 0 accepts p = 0; the sampler's form of it, at both ends.
def test_extreme_bits_never_draw_a_token_of_probability_zero():
  rng = np.random.default_rng(8)
  bits = np.array([[a, b] for a in EXTREME_WORDS for b in EXTREME_WORDS])
  for vocab in [2, 3, 128, 129, VOCAB]:
    for _ in range(4):
      probs = rng.random(vocab) * (rng.random(vocab) < 0.3)
      probs[[0, -1]] = 0.0
      probs[rng.integers(vocab)] = 1e-3
      tokens = draw_many(jnp.asarray(probs), jnp.asarray(bits, jnp.uint32))
      assert 0 <= tokens.min() <= tokens.max() < vocab
      assert (probs[np.asarray(tokens)] > 0).all()


# public bug: epsilon inside log or ratio gives mass to p = 0 tokens, growing
# with the vocabulary.
def test_one_hot_law_never_draws_another_id():
  probs = standardize(jnp.zeros(VOCAB).at[17].set(9.0), 0.0)
  bits = jax.random.bits(jax.random.key(0), (1_000, 2))
  assert (draw_many(probs, bits) == 17).all()


# public bug: draft sampled after top-k, q returned before it.
def test_draws_stay_inside_the_truncated_law():
  probs = random_law(9, 8, top_k=2)
  bits = jax.random.bits(jax.random.key(1), (10_000, 2))
  drawn = np.bincount(np.asarray(draw_many(probs, bits)), minlength=8)
  np.testing.assert_array_equal(drawn > 0, np.asarray(probs) > 0)


def test_sample_over_leading_axes_equals_row_by_row():
  probs = random_law(10, 2, 3, 300)
  bits = jax.random.bits(jax.random.key(2), (2, 3, 2))
  tokens = draw(probs, bits)
  assert (tokens.dtype, tokens.shape) == (jnp.int32, (2, 3))
  alone = [[draw(probs[i, j], bits[i, j]) for j in range(3)] for i in (0, 1)]
  np.testing.assert_array_equal(tokens, alone)


def test_sample_does_not_need_normalised_weights():
  probs = random_law(11, 300)
  bits = jax.random.bits(jax.random.key(3), (1000, 2))
  expected = draw_many(probs, bits)
  np.testing.assert_array_equal(draw_many(probs * 2.0**-20, bits), expected)


@pytest.mark.parametrize(
    ('bits', 'got'),
    [
        (jnp.float32(0.5), r'Got float32 with shape \(\)'),
        (jnp.zeros(3, jnp.uint32), r'Got uint32 with shape \(3,\)'),
    ],
)
def test_sample_names_bad_bits(bits, got):
  with pytest.raises(ValueError, match=r'`bits` must be uint32.*' + got):
    sample(jnp.ones(4) / 4, bits)

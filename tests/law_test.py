"""Tests of what lies between a model's logits and the law tokens are of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spec_t5x.law import Law, Sampling, has_law, log_prob

TOKENS = jnp.arange(12).reshape(2, 6)
INDEX = jnp.array([1, 3])


def make_law(width=6, temperature=(1.0, 1.0), **changes):
  sampling = Sampling(**{"greedy": False, "num_ids": width, **changes})
  return Law(jnp.array(temperature), sampling, width)


def random_logits(width=6, block=3):
  return jax.random.normal(jax.random.key(0), (2, block, width))


def test_logits_of_the_right_width_are_left_alone():
  logits = random_logits()
  np.testing.assert_array_equal(
      make_law().adjust(logits, TOKENS, INDEX), logits
  )


def test_a_narrower_draft_never_proposes_what_it_does_not_know():
  logits = random_logits(width=4)
  adjusted = make_law().adjust(logits, TOKENS, INDEX)
  np.testing.assert_array_equal(adjusted[..., :4], logits)
  assert (adjusted[..., 4:] == -jnp.inf).all()


def test_a_wider_draft_is_cut():
  logits = random_logits(width=9)
  adjusted = make_law().adjust(logits, TOKENS, INDEX)
  np.testing.assert_array_equal(adjusted, logits[..., :6])


def test_padded_ids_are_banned():
  law = make_law(num_ids=5)
  adjusted = law.adjust(random_logits(), TOKENS, INDEX)
  assert (adjusted[..., 5] == -jnp.inf).all()
  assert jnp.isfinite(adjusted[..., :5]).all()


def test_the_callback_sees_each_place_with_its_own_index():
  # Bans the id that equals the row's place.
  callback = lambda logits, tokens, index: jnp.where(
      jnp.arange(6) == index[:, None], -jnp.inf, logits
  )
  law = make_law(logit_callback=callback)
  adjusted = law.adjust(random_logits(), TOKENS, INDEX)
  banned = np.argwhere(adjusted == -jnp.inf).tolist()
  assert banned == [
      [row, place, int(INDEX[row]) + place]
      for row in range(2)
      for place in range(3)
  ]


def test_each_row_has_its_own_temperature():
  logits = jnp.tile(random_logits()[:1], (2, 1, 1))
  probs = make_law(temperature=(0.0, 0.5)).probs(logits)
  one_hot = jax.nn.one_hot(logits[0].argmax(-1), 6)
  np.testing.assert_array_equal(probs[0], one_hot)
  np.testing.assert_allclose(
      probs[1], jax.nn.softmax(logits[1] / 0.5), atol=1e-6
  )


def test_greedy_draws_the_argmax_and_makes_no_law():
  logits = random_logits(block=1)[:, 0]
  tokens, probs = make_law(greedy=True).draw(
      logits, jnp.zeros((2, 2), "uint32")
  )
  np.testing.assert_array_equal(tokens, logits.argmax(-1))
  assert probs is None


def test_what_is_drawn_comes_with_the_law_it_was_drawn_from():
  law = make_law(top_k=2)
  logits = random_logits(block=1)[:, 0]
  bits = jax.random.bits(jax.random.key(1), (500, 2, 2), "uint32")
  tokens, probs = jax.vmap(lambda b: law.draw(logits, b))(bits)
  assert ((probs > 0).sum(-1) == 2).all()
  drawn = jnp.take_along_axis(probs, tokens[..., None], axis=-1)
  assert (drawn > 0).all()
  # Both ids turn up in each row: missing one of at least 5% in 500 draws has a
  # probability below 1e-11, twice that for two rows.
  assert probs.max() < 0.95
  assert [len(np.unique(tokens[:, row])) for row in range(2)] == [2, 2]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([0.0, 1.0], True),
        ([-np.inf, 1.0], True),
        ([np.nan, 1.0], False),
        ([np.inf, 1.0], False),
        ([-np.inf, -np.inf], False),
    ],
)
def test_has_law(row, expected):
  assert bool(has_law(jnp.array([row]))[0]) is expected


def test_log_prob_is_that_of_the_softmax():
  logits = random_logits()
  tokens = jnp.array([[0, 5, 2], [3, 3, 1]])
  expected = np.take_along_axis(
      np.log(jax.nn.softmax(logits)), np.array(tokens)[..., None], axis=-1
  )[..., 0]
  np.testing.assert_allclose(log_prob(logits, tokens), expected, atol=1e-6)

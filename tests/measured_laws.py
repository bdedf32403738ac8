"""The law of an inverse-CDF draw, measured from outside by bisection."""

import jax
import numpy as np
from jax import numpy as jnp


def words_below(draw, index):
  """Counts the values of a random word that draw a token below `index`.

  Args:
    draw: monotone map of uint32 words, shaped like `index`, to tokens.
    index: int32 array.

  Returns:
    Counts out of 2**32, uint32. Bisection cannot tell the last word: 2**32
    reads as 2**32 - 1.
  """

  def set_bit(step, known):
    # `known` words, counted from 0, are known to draw a token below `index`.
    more = known + (jnp.uint32(1) << (31 - step).astype(jnp.uint32))
    return jnp.where(draw(more - 1) < index, more, known)

  zeros = jnp.zeros_like(index, jnp.uint32)
  return jax.lax.fori_loop(0, 32, set_bit, zeros)


def law_from(first_words):
  """Turns counts of `words_below` for index 1, 2, ... into the law, float64.

  Args:
    first_words: [vocab - 1, ...].

  Returns:
    Probabilities [vocab, ...], right to 2**-32.
  """
  inner = np.asarray(first_words, np.float64)
  return np.diff(inner, axis=0, prepend=0.0, append=2.0**32) / 2**32

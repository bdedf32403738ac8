"""An n-gram table as a model (Leviathan et al. 2023, section 3.6).

It costs next to nothing: c is close to 0, so any alpha above 0 is a gain, of
at most 1 / (1 - alpha).
"""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from spec_t5x import texts
from spec_t5x.drafts.ngram_table import NgramTable
from spec_t5x.types import Cache, Context


@dataclasses.dataclass(frozen=True)
class NgramScorer:
  """Implements `types.Scorer`; the parameters are the table.

  Attributes:
    vocab_size: number of ids.
  """

  vocab_size: int

  def start(
      self, params: NgramTable, inputs: Int[Array, "batch inputs"]
  ) -> Context:
    """The inputs say nothing."""
    del params, inputs
    return ()

  def init_cache(self, batch: int, length: int) -> Cache:
    """A buffer for the tokens themselves."""
    return jnp.zeros((batch, length), "int32")

  def extend(
      self,
      params: NgramTable,
      context: Context,
      cache: Int[Array, "batch length"],
      tokens: Int[Array, "batch block"],
      index: Int[Array, " batch"],
      only: Int[Array, " batch"] | None = None,
  ) -> tuple[Float[Array, "batch places vocab"], Cache]:
    """See `types.Scorer.extend`."""
    del context
    cache = texts.write_block(cache, index, tokens)
    places = index[:, None] + jnp.arange(tokens.shape[1])
    # Position 0 is BOS, and so is what a table was told stands before it.
    before = jnp.take_along_axis(cache, jnp.maximum(places - 1, 0), axis=1)
    known = jnp.stack([before, tokens], -1)
    if only is not None:
      known = jnp.take_along_axis(known, only[:, None, None], axis=1)
    return jnp.log(params.probs(known)), cache

"""An n-gram table as the draft (Leviathan et al. 2023, section 3.6).

It costs next to nothing: c is close to 0, so any alpha above 0 is a gain, of
at most 1 / (1 - alpha).
"""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, UInt32

from spec_t5x import texts
from spec_t5x.drafts.ngram_table import NgramTable
from spec_t5x.law import Law
from spec_t5x.types import Cache, Context, Proposal


@dataclasses.dataclass(frozen=True)
class NgramDraft:
  """Draws each token from the table's law; the parameters are the table.

  Attributes:
    gamma: tokens proposed in one iteration.
  """

  gamma: int

  def start(
      self, params: NgramTable, inputs: Int[Array, "batch inputs"]
  ) -> Context:
    """The inputs say nothing."""
    del params, inputs
    return ()

  def init_cache(self, batch: int, length: int) -> Cache:
    """Nothing is carried."""
    del batch, length
    return ()

  def prefill(
      self,
      params: NgramTable,
      context: Context,
      cache: Cache,
      tokens: Int[Array, "batch block"],
  ) -> Cache:
    """Nothing is carried."""
    del params, context, tokens
    return cache

  def propose(
      self,
      params: NgramTable,
      context: Context,
      cache: Cache,
      tokens: Int[Array, "batch length"],
      index: Int[Array, " batch"],
      law: Law,
      bits: UInt32[Array, "batch gamma 2"],
  ) -> tuple[Proposal, Cache]:
    """See `types.Draft.propose`."""
    del context

    def step(carry, words):
      """Draws the token at `at + 1`."""
      tokens, at = carry
      # Position 0 is BOS, and so is what a table was told stands before it.
      before = texts.read_block(tokens, jnp.maximum(at - 1, 0), 1)
      pair = jnp.concatenate([before, texts.read_block(tokens, at, 1)], axis=1)
      logits = jnp.log(params.probs(pair))[:, None]
      logits = law.adjust(logits, tokens, at + 1)
      token, probs = law.draw(logits[:, 0], words)
      token = token.astype(tokens.dtype)
      tokens = texts.write_block(tokens, at + 1, token[:, None])
      return (tokens, at + 1), (token, probs)

    _, drawn = jax.lax.scan(step, (tokens, index), jnp.moveaxis(bits, 1, 0))
    drawn = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), drawn)
    return Proposal(*drawn), cache

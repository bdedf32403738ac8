"""A small model as the draft (Leviathan et al. 2023, Algorithm 1)."""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, UInt32

from spec_t5x import texts
from spec_t5x.law import Law
from spec_t5x.types import Cache, Context, Params, Proposal, Scorer


@dataclasses.dataclass(frozen=True)
class ModelDraft:
  """Proposes gamma tokens, one decode step of a small model each.

  Attributes:
    scorer: the small model.
    gamma: tokens proposed in one iteration.
  """

  scorer: Scorer
  gamma: int

  def start(
      self, params: Params, inputs: Int[Array, "batch inputs"]
  ) -> Context:
    """Encodes the inputs."""
    return self.scorer.start(params, inputs)

  def init_cache(self, batch: int, length: int) -> Cache:
    """Returns the small model's buffers."""
    return self.scorer.init_cache(batch, length)

  def prefill(
      self,
      params: Params,
      context: Context,
      cache: Cache,
      tokens: Int[Array, "batch block"],
  ) -> Cache:
    """Appends the beginning of the texts to the buffers."""
    index = jnp.zeros(tokens.shape[0], "int32")
    return self.scorer.extend(params, context, cache, tokens, index)[1]

  def propose(
      self,
      params: Params,
      context: Context,
      cache: Cache,
      tokens: Int[Array, "batch length"],
      index: Int[Array, " batch"],
      law: Law,
      bits: UInt32[Array, "batch gamma 2"],
  ) -> tuple[Proposal, Cache]:
    """See `types.Draft.propose`."""

    def draw(cache, tokens, at, block, row, words):
      """One decode step: the token at `at + 1`."""
      logits, cache = self.scorer.extend(
          params, context, cache, block, at - row
      )
      logits = jnp.take_along_axis(logits, row[:, None, None], axis=1)
      logits = law.adjust(logits, tokens, at + 1)
      token, probs = law.draw(logits[:, 0], words)
      token = token.astype(tokens.dtype)
      tokens = texts.write_block(tokens, at + 1, token[:, None])
      return cache, tokens, token, probs

    # A fully accepted block ends in a token that this model has not read
    # yet, so every first step reads the last two. Reading a token again
    # writes what stands there already.
    row = jnp.minimum(index, 1)
    block = texts.read_block(tokens, index - row, 2)
    cache, tokens, token, probs = draw(
        cache, tokens, index, block, row, bits[:, 0]
    )

    def step(carry, scanned):
      cache, tokens, token = carry
      place, words = scanned
      cache, tokens, token, probs = draw(
          cache,
          tokens,
          index + place,
          token[:, None],
          jnp.zeros_like(index),
          words,
      )
      return (cache, tokens, token), (token, probs)

    places = jnp.arange(1, self.gamma)
    carry, rest = jax.lax.scan(
        step, (cache, tokens, token), (places, jnp.moveaxis(bits, 1, 0)[1:])
    )
    stack = lambda first, others: jnp.moveaxis(
        jnp.concatenate([first[None], others]), 0, 1
    )
    proposal = jax.tree.map(stack, (token, probs), rest)
    return Proposal(*proposal), carry[0]

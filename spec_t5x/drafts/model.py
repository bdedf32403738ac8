"""A small model as the draft (Leviathan et al. 2023, Algorithm 1)."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, UInt32

from spec_t5x import texts
from spec_t5x.law import Law, has_law
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

  def _step(
      self, params, context, law: Law, carry, at, block, row, words
  ) -> tuple[tuple[Cache, Array], tuple[Array, Array | None, Array]]:
    """One decode step: draws the token at `at + 1` of each row.

    Args:
      params: the small model's parameters.
      context: as returned by `start`.
      law: how tokens are drawn.
      carry: cache and texts.
      at: position of each row's last known token.
      block: the last tokens, which the model reads.
      row: which token of the block is the one at `at`.
      words: random words.

    Returns:
      The carry, and the tokens with their laws and whether they have one.
    """
    cache, tokens = carry
    logits, cache = self.scorer.extend(
        params, context, cache, block, at - row, only=row
    )
    logits = law.adjust(logits, tokens, at + 1)[:, 0]
    token, probs = law.draw(logits, words)
    token = token.astype(tokens.dtype)
    tokens = texts.write_block(tokens, at + 1, token[:, None])
    return (cache, tokens), (token, probs, has_law(logits))

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
    step = functools.partial(self._step, params, context, law)
    # A fully accepted block ends in a token that this model has not read
    # yet, so every first step reads the last two. Reading a token again
    # writes what stands there already.
    row = jnp.minimum(index, 1)
    block = texts.read_block(tokens, index - row, 2)
    carry, first = step((cache, tokens), index, block, row, bits[:, 0])

    def next_step(carry, scanned):
      place, words = scanned
      at = index + place
      block = texts.read_block(carry[1], at, 1)
      return step(carry, at, block, jnp.zeros_like(index), words)

    places = jnp.arange(1, self.gamma)
    words = jnp.moveaxis(bits, 1, 0)[1:]
    carry, others = jax.lax.scan(next_step, carry, (places, words))
    stack = lambda one, rest: jnp.moveaxis(
        jnp.concatenate([one[None], rest]), 0, 1
    )
    drafted, probs, finite = jax.tree.map(stack, first, others)
    return Proposal(drafted, probs, finite=finite.all(axis=1)), carry[0]

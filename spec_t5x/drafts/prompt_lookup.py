"""Copying as the draft: no model, no table.

What followed the last few tokens before is proposed again. "Before" is the
inputs, which summaries and translations copy names and code from (Leviathan
et al. 2023, section 3.6), and the text so far.
"""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt32

from spec_t5x import texts
from spec_t5x.law import Law
from spec_t5x.types import PAD_ID, Cache, Context, Params, Proposal


@dataclasses.dataclass(frozen=True)
class PromptLookup:
  """How far back a match must reach; for `Decoder`.

  Attributes:
    max_ngram: last tokens looked for; fewer, if so many do not occur.
  """

  max_ngram: int = 3

  def __post_init__(self):
    """Checks the range."""
    if not isinstance(self.max_ngram, int) or self.max_ngram < 1:
      raise ValueError(
          "`max_ngram` must be an integer, at least 1."
          f" Got {self.max_ngram!r}."
      )


@dataclasses.dataclass(frozen=True)
class PromptLookupDraft:
  """Proposes what followed the longest match, the first of equals.

  The proposal is a function of what is known: a point mass, which the target
  accepts with its own probability, so the output law stays the target's.

  Attributes:
    gamma: most tokens proposed in one iteration.
    max_ngram: see `PromptLookup`.
  """

  gamma: int
  max_ngram: int

  def start(
      self, params: Params, inputs: Int[Array, "batch inputs"]
  ) -> Context:
    """Keeps the inputs to copy from."""
    del params
    return inputs

  def init_cache(self, batch: int, length: int) -> Cache:
    """Nothing is carried."""
    del batch, length
    return ()

  def prefill(
      self,
      params: Params,
      context: Context,
      cache: Cache,
      tokens: Int[Array, "batch block"],
  ) -> Cache:
    """Nothing is carried."""
    del params, context, tokens
    return cache

  def propose(
      self,
      params: Params,
      context: Int[Array, "batch inputs"],
      cache: Cache,
      tokens: Int[Array, "batch length"],
      index: Int[Array, " batch"],
      law: Law,
      bits: UInt32[Array, "batch gamma 2"],
  ) -> tuple[Proposal, Cache]:
    """See `types.Draft.propose`. Without a match no token counts."""
    del params, law, bits
    place = jnp.arange(tokens.shape[1])
    # BOS between inputs and text is unknown, so no match reaches across.
    known = jnp.concatenate(
        [context != PAD_ID, (place > 0) & (place <= index[:, None])], axis=1
    )
    source = jnp.concatenate([context.astype(tokens.dtype), tokens], axis=1)
    matched = self._matched(source, known, tokens, index)
    first = jnp.argmax(matched, axis=1) + 1
    padding = ((0, 0), (0, self.gamma))
    copied = texts.read_block(jnp.pad(source, padding), first, self.gamma)
    follows = texts.read_block(jnp.pad(known, padding), first, self.gamma)
    follows &= (matched.max(axis=1) > 0)[:, None]
    num_drafted = jnp.cumprod(follows, axis=1).sum(axis=1, dtype="int32")
    return Proposal(copied, None, num_drafted), cache

  def _matched(
      self,
      source: Int[Array, "batch source"],
      known: Bool[Array, "batch source"],
      tokens: Int[Array, "batch length"],
      index: Int[Array, " batch"],
  ) -> Int[Array, "batch source"]:
    """Counts last tokens that match the ones up to each place in `source`.

    0 where nothing known follows: at the end of the inputs and of the text.
    """
    followed = jnp.pad(known[:, 1:], ((0, 0), (0, 1)))
    matched = jnp.zeros_like(source)
    matches = followed
    for back in range(self.max_ngram):
      shift = lambda x: jnp.pad(x, ((0, 0), (back, 0)))[:, : x.shape[1]]  # noqa: B023
      at = index - back
      token = texts.read_block(tokens, jnp.maximum(at, 0), 1)
      matches &= shift(known) & (shift(source) == token) & (at > 0)[:, None]
      matched += matches
    return matched

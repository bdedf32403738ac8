"""Vocabulary of the package: array aliases and the two decoding contracts.

Axis legend, used in every signature:

  batch   rows decoded together: texts, or texts times `num_decodes`
  length  positions of a text buffer; position 0 holds BOS
  block   consecutive tokens appended to a row by one model call
  gamma   tokens proposed by the draft in one iteration
  vocab   ids of the vocabulary, padding included
"""

from collections.abc import Callable
from typing import Any, Protocol

import jax
from jaxtyping import Array, Float, Int

Params = Any
Context = Any
Cache = Any
PRNGKey = jax.Array

PAD_ID = 0
BOS_ID = 0
EOS_ID = 1

# (logits [batch, vocab], tokens [batch, length], index [batch]) -> logits.
# `tokens[:, :index]` is the known prefix of each row; what stands at and
# after `index` is undefined.
LogitCallback = Callable[
    [
        Float[Array, "batch vocab"],
        Int[Array, "batch length"],
        Int[Array, " batch"],
    ],
    Float[Array, "batch vocab"],
]


class Scorer(Protocol):
  """A model as the decoding loop sees it: one operation.

  Plain decoding (block 1), drafting (block 1 or 2), verification (block
  gamma + 1) and prompt prefill are all `extend`.
  """

  @property
  def vocab_size(self) -> int:
    """Number of logits per position, padded ids included."""
    ...

  def start(
      self, params: Params, inputs: Int[Array, "batch inputs"]
  ) -> Context:
    """Does all work that depends on the inputs alone, once per text."""
    ...

  def init_cache(self, batch: int, length: int) -> Cache:
    """Returns a buffer for `length` positions; its content is never read."""
    ...

  def extend(
      self,
      params: Params,
      context: Context,
      cache: Cache,
      tokens: Int[Array, "batch block"],
      index: Int[Array, " batch"],
  ) -> tuple[Float[Array, "batch block vocab"], Cache]:
    """Appends a block to each row at that row's own index.

    Token `tokens[b, i]` stands at position `index[b] + i`. What stood there
    is overwritten; a query sees the keys at positions up to its own. So
    passing a smaller index rewinds a row, and nothing is ever cleared.

    Returns:
      `logits[b, i]`, the logits of position `index[b] + i + 1`, float32, and
      the cache that holds the block.
    """
    ...

"""Vocabulary of the package: array aliases and the two decoding contracts.

Axis legend, used in every signature:

  batch   rows decoded together: texts, or texts times `num_decodes`
  length  positions of a text buffer; position 0 holds BOS
  block   consecutive tokens appended to a row by one model call
  gamma   tokens proposed by the draft in one iteration
  vocab   ids of the vocabulary, padding included
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
from jaxtyping import Array, Bool, Float, Int, UInt32

Params = Any
Context = Any
Cache = Any
PRNGKey = jax.Array

PAD_ID = 0
BOS_ID = 0
EOS_ID = 1

# (logits [batch, vocab], tokens [batch, length], index [batch]) -> logits.
# `tokens[:, :index]` is the known prefix of each row; what stands at and
# after `index` is undefined. It is asked about drafted prefixes too, with EOS
# inside, and must never ban every token.
LogitCallback = Callable[
    [
        Float[Array, "batch vocab"],
        Int[Array, "batch length"],
        Int[Array, " batch"],
    ],
    Float[Array, "batch vocab"],
]


@runtime_checkable
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
      only: Int[Array, " batch"] | None = None,
  ) -> tuple[Float[Array, "batch places vocab"], Cache]:
    """Appends a block to each row at that row's own index.

    Token `tokens[b, i]` stands at position `index[b] + i`. What stood there
    is overwritten; a query sees the keys at positions up to its own. So
    passing a smaller index rewinds a row, and nothing is ever cleared.

    Args:
      params: parameters.
      context: as returned by `start`.
      cache: as returned by `init_cache` or the call before.
      tokens: the block.
      index: position of each row's first token.
      only: which token of each row's block logits are wanted for; None for
        all. Logits are dear: a small model spends half its step on them.

    Returns:
      `logits[b, i]`, the logits of position `index[b] + i + 1`, float32, and
      the cache that holds the block. With `only` one place: those of position
      `index[b] + only[b] + 1`.
    """
    ...


class Proposal(NamedTuple):
  """What a draft proposes in one iteration.

  Attributes:
    tokens: the drafted tokens.
    probs: the law each was drawn from, the very array it was sampled with;
      None if the tokens are a deterministic function of what is known (then
      the law is a point mass and no array of vocabulary size exists).
    num_drafted: how many of the tokens count, per row; None for all. It may
      depend on anything the draft knows, the last counted token included,
      but that token must be counted.
    finite: whether the logits behind each row were finite; None for a draft
      without any.
  """

  tokens: Int[Array, "batch gamma"]
  probs: Float[Array, "batch gamma vocab"] | None
  num_drafted: Int[Array, " batch"] | None = None
  finite: Bool[Array, " batch"] | None = None


@runtime_checkable
class Draft(Protocol):
  """A source of proposals.

  Attributes:
    gamma: tokens proposed in one iteration.
  """

  gamma: int

  def start(
      self, params: Params, inputs: Int[Array, "batch inputs"]
  ) -> Context:
    """Does all work that depends on the inputs alone, once per text."""
    ...

  def init_cache(self, batch: int, length: int) -> Cache:
    """Returns what `propose` carries from one iteration to the next."""
    ...

  def prefill(
      self,
      params: Params,
      context: Context,
      cache: Cache,
      tokens: Int[Array, "batch block"],
  ) -> Cache:
    """Reads the beginning of the texts: BOS and forced prompts."""
    ...

  def propose(
      self,
      params: Params,
      context: Context,
      cache: Cache,
      tokens: Int[Array, "batch length"],
      index: Int[Array, " batch"],
      law: Any,
      bits: UInt32[Array, "batch gamma 2"],
  ) -> tuple[Proposal, Cache]:
    """Proposes the tokens at positions `index + 1` to `index + gamma`.

    Args:
      params: the draft's parameters.
      context: as returned by `start`.
      cache: as returned by the previous call.
      tokens: the texts; known up to and including position `index`.
      index: position of each row's last known token.
      law: `law.Law`, how tokens are drawn, shared with the target.
      bits: random words, two for each token.

    Returns:
      The proposal and the cache.
    """
    ...

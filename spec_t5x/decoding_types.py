"""What the decoding loop is given and what it returns."""

import dataclasses
from typing import NamedTuple

from jaxtyping import Array, Bool, Float, Int, Key

from spec_t5x.law import Sampling
from spec_t5x.types import EOS_ID, Context, Draft, Params, Scorer


@dataclasses.dataclass(frozen=True)
class Settings:
  """What the loop is compiled for.

  Attributes:
    max_length: positions of a text, BOS not counted.
    sampling: how tokens are drawn.
    num_decodes: texts per input, drawn independently.
    lenience: in (0, 1]; 1 is exact (Leviathan et al. 2023, A.5).
    block_verification: test the drafted block as one (Sun et al. 2024)
      instead of token by token.
    rescale_log_probs: whether log-probabilities are those of the standardised
      law, as T5X's default has it, or of the plain softmax.
    eos_id: ends a text.
  """

  max_length: int
  sampling: Sampling
  num_decodes: int = 1
  lenience: float = 1.0
  block_verification: bool = False
  rescale_log_probs: bool = True
  eos_id: int = EOS_ID


@dataclasses.dataclass(frozen=True)
class Models:
  """The pair that decodes; `draft` is None for plain decoding."""

  target: Scorer
  draft: Draft | None = None

  @property
  def gamma(self) -> int:
    """Tokens drafted in one iteration; 0 without a draft."""
    return self.draft.gamma if self.draft else 0


class Weights(NamedTuple):
  """Parameters of the pair."""

  target: Params
  draft: Params = None


class Contexts(NamedTuple):
  """What each model made of the inputs, one row per input."""

  target: Context
  draft: Context = None


class Rows(NamedTuple):
  """What differs from row to row; rows are inputs times `num_decodes`.

  Attributes:
    prompt: tokens that every decode of a row begins with, PAD behind them;
      its width may be 0.
    limit: most tokens of each row, prompt included.
    temperature: at or below 1e-4 a row decodes by argmax.
    keys: each row's stream of random numbers.
  """

  prompt: Int[Array, "rows prompt"]
  limit: Int[Array, " rows"]
  temperature: Float[Array, " rows"]
  keys: Key[Array, " rows"]


class Counts(NamedTuple):
  """Statistics of each row, as counts; see `statistics.DecodeStatistics`.

  Attributes:
    accept_counts: iterations by their number of accepted tokens.
    tested: drafted tokens that were tested, by place in the block.
    accepted: drafted tokens that were accepted, by place in the block.
    overlap: sum over tested tokens of sum_x min(p(x), q(x)).
    iterations: rounds of draft and verification, each one target call.
    emitted: tokens written, EOS included, prompt not.
  """

  accept_counts: Int[Array, "rows gamma_plus_1"]
  tested: Int[Array, "rows gamma"]
  accepted: Int[Array, "rows gamma"]
  overlap: Float[Array, "rows gamma"]
  iterations: Int[Array, " rows"]
  emitted: Int[Array, " rows"]


class Decoded(NamedTuple):
  """The texts, without BOS.

  Attributes:
    tokens: EOS kept, PAD behind it.
    token_log_probs: of each token under the target, nats; 0 for the prompt
      and for padding.
    finite: whether all logits that a row depended on were finite.
    counts: statistics.
  """

  tokens: Int[Array, "rows max_length"]
  token_log_probs: Float[Array, "rows max_length"]
  finite: Bool[Array, " rows"]
  counts: Counts

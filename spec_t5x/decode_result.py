"""What `Decoder` returns."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from spec_t5x import inputs
from spec_t5x.decoding_types import Decoded
from spec_t5x.statistics import DecodeStatistics
from spec_t5x.vocabulary import Vocabulary


class DecodeResult(NamedTuple):
  """What `Decoder` returns.

  The `num_decodes` axis is present iff `num_decodes` > 1; decodes of an input
  are sorted by rising log-probability, as in T5X.

  Attributes:
    tokens: EOS kept, PAD (0) behind it; a forced prompt is included.
    texts: decoded tokens; None without a vocabulary.
    log_probs: of each decode under the target, nats, prompt not counted.
    token_log_probs: the summands of `log_probs`.
    statistics: counts, pooled over all decodes.
    per_decode: the same of each decode, inputs first, in the order of
      `tokens`.
  """

  tokens: Int[np.ndarray, "batch ... length"]
  texts: list[Any] | None
  log_probs: Float[np.ndarray, "batch ..."]
  token_log_probs: Float[np.ndarray, "batch ... length"]
  statistics: DecodeStatistics
  per_decode: list[DecodeStatistics]


def make_result(
    decoded: Decoded,
    num_decodes: int,
    example_ids: Sequence[int] | None,
    vocabulary: Vocabulary | None,
) -> DecodeResult:
  """Groups, sorts and detokenises what the loop returned.

  Args:
    decoded: rows on the host, `num_decodes` for each input.
    num_decodes: decodes of each input.
    example_ids: names of the inputs in errors; None for 0, 1, 2...
    vocabulary: for texts, or None.

  Raises:
    FloatingPointError: a model's logits are not finite; names the inputs.
  """
  batch = len(decoded.finite) // num_decodes
  bad = np.flatnonzero(~decoded.finite.reshape(batch, num_decodes).all(axis=1))
  if bad.size:
    ids = bad if example_ids is None else np.asarray(example_ids)[bad]
    raise FloatingPointError(
        "The logits of the target or of its draft are not finite for inputs"
        f" {ids.tolist()}."
    )
  log_probs = decoded.token_log_probs.sum(axis=1)
  order = np.argsort(
      log_probs.reshape(batch, num_decodes), axis=1, kind="stable"
  )
  order = (order + num_decodes * np.arange(batch)[:, None]).reshape(-1)
  decoded = jax.tree.map(lambda x: x[order], decoded)
  per_decode = inputs.row_statistics(decoded.counts)
  group = lambda x: (
      x.reshape(batch, num_decodes, *x.shape[1:]) if num_decodes > 1 else x
  )
  tokens = group(decoded.tokens)
  return DecodeResult(
      tokens=tokens,
      texts=None if vocabulary is None else _texts(vocabulary, tokens),
      log_probs=group(log_probs[order]),
      token_log_probs=group(decoded.token_log_probs),
      statistics=DecodeStatistics.pool(per_decode),
      per_decode=per_decode,
  )


def _texts(vocabulary: Vocabulary, tokens: np.ndarray) -> list[Any]:
  if tokens.ndim > 2:
    return [_texts(vocabulary, decodes) for decodes in tokens]
  return [vocabulary.decode(row) for row in tokens]

"""Batches of a decode job: few shapes, little padding, the same every time."""

import dataclasses
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from spec_t5x import inputs
from spec_t5x.decode_result import DecodeResult
from spec_t5x.decoder import Decoder
from spec_t5x.statistics import DecodeStatistics
from spec_t5x.types import PAD_ID


class Batch(NamedTuple):
  """Inputs that are decoded together.

  Attributes:
    index: place among the batches.
    lines: the input of each row, counted from 0. Rows beyond repeat the last
      one, so that all batches have one number of rows.
    ids: token ids, PAD behind them.
  """

  index: int
  lines: list[int]
  ids: Int[np.ndarray, "batch width"]

  @property
  def example_ids(self) -> list[int]:
    """The input of each row, repeated ones included."""
    missing = len(self.ids) - len(self.lines)
    return self.lines + self.lines[-1:] * missing


def padded_width(length: int) -> int:
  """Returns the width to which an input is padded.

  A multiple of 16 of which there are two in each octave: 16, 32, 48, 64, 96,
  128, 192, 256... Any input is padded by less than 16 tokens or half of it.
  """
  octave = 1 << max(0, length - 1).bit_length()
  return inputs.padded_length(length, max(inputs.INPUT_MULTIPLE, octave // 4))


def make_batches(ids: Sequence[Sequence[int]], batch_size: int) -> list[Batch]:
  """Puts inputs of about one length together, the longest first.

  Longest first, so that a batch that does not fit into memory fails at once.

  Args:
    ids: token ids of the inputs.
    batch_size: most rows of a batch.

  Returns:
    The fewest batches possible, of equally many rows.
  """
  order = sorted(range(len(ids)), key=lambda line: -len(ids[line]))
  num_batches = -(-len(ids) // batch_size)
  rows = -(-len(ids) // num_batches)
  batches = []
  for start in range(0, len(ids), rows):
    lines = order[start : start + rows]
    width = padded_width(len(ids[lines[0]]))
    array = np.full((rows, width), PAD_ID, np.int32)
    batch = Batch(len(batches), lines, array)
    for row, line in zip(array, batch.example_ids, strict=True):
      row[: len(ids[line])] = ids[line]
    batches.append(batch)
  return batches


@dataclasses.dataclass(frozen=True)
class BatchResult:
  """A decoded batch.

  Attributes:
    batch: its place among the batches.
    lines: the inputs, counted from 0.
    records: one per input, as they stand in the outputs.
    statistics: counts, pooled over the records.
    seconds: from token ids to texts, on the clock.
    is_first: whether it was the first of its shape in its process, so that
      `seconds` holds a compilation.
  """

  batch: int
  lines: list[int]
  records: list[dict[str, Any]]
  statistics: DecodeStatistics
  seconds: float
  is_first: bool

  @classmethod
  def from_dict(cls, fields: dict[str, Any]) -> "BatchResult":
    """Restores what `dataclasses.asdict` made."""
    statistics = DecodeStatistics.from_row(**fields["statistics"])
    return cls(**{**fields, "statistics": statistics})


def decode_batch(
    decoder: Decoder,
    batch: Batch,
    entries: Sequence[str | list[int]],
    is_prompt: bool,
    is_first: bool,
) -> BatchResult:
  """Decodes a batch.

  Args:
    decoder: decodes it.
    batch: token ids.
    entries: all inputs of the job.
    is_prompt: whether decodes begin with their inputs (decoder-only models).
    is_first: see `BatchResult`.

  Raises:
    FloatingPointError: a model's logits are not finite; names the lines.
  """
  start = time.perf_counter()
  try:
    result = decoder(batch.ids, example_ids=batch.example_ids)
  except FloatingPointError as error:
    error.add_note("Inputs are counted from 0: input 0 is line 1.")
    raise
  seconds = time.perf_counter() - start
  prompt_lengths = (batch.ids != PAD_ID).sum(axis=1) * is_prompt
  decodes = _decodes(result, prompt_lengths)
  num_decodes = len(decodes) // len(batch.ids)
  records = []
  for row, line in enumerate(batch.lines):
    own = decodes[row * num_decodes : (row + 1) * num_decodes]
    fields = own[0]
    if num_decodes > 1:
      fields = {name: [decode[name] for decode in own] for name in own[0]}
    records.append({"input": entries[line]} | fields)
  counted = result.per_decode[: len(batch.lines) * num_decodes]
  statistics = DecodeStatistics.pool(counted)
  return BatchResult(
      batch.index, batch.lines, records, statistics, seconds, is_first
  )


def _decodes(
    result: DecodeResult, prompt_lengths: Int[np.ndarray, " batch"]
) -> list[dict[str, Any]]:
  """Returns the fields of each decode, all decodes of an input in a row."""
  num_decodes = len(result.per_decode) // len(prompt_lengths)
  texts = np.full(len(result.per_decode), None)
  if result.texts:
    texts = np.reshape(np.array(result.texts, object), -1)
  flat = zip(
      np.repeat(prompt_lengths, num_decodes),
      result.tokens.reshape(-1, result.tokens.shape[-1]),
      texts,
      result.log_probs.reshape(-1),
      result.per_decode,
      strict=True,
  )
  return [_fields(*decode) for decode in flat]


def _fields(
    prompt_length: int,
    tokens: Int[np.ndarray, " length"],
    text: str | None,
    log_prob: float,
    statistics: DecodeStatistics,
) -> dict[str, Any]:
  """Returns the fields of one decode."""
  prediction = {} if text is None else {"prediction": text}
  return prediction | {
      "tokens": tokens[: prompt_length + statistics.emitted].tolist(),
      # The seven digits that float32 holds.
      "log_prob": float(f"{log_prob:.7g}"),
      "accept_counts": list(statistics.accept_counts),
      "iterations": statistics.iterations,
      "emitted": statistics.emitted,
  }

"""Whole texts: the target's own, and the same ones decoded with a draft.

Timed texts are few, and at temperature 1 a score of few texts is mostly chance.
So quality is measured on all texts that alpha is averaged over, and comes with
an interval of the difference between both ways.
"""

from collections.abc import Iterator
from typing import Any

from spec_t5x.decoder import Decoder
from spec_t5x.experiments.texts import Texts

Rows = list[dict[str, Any]]
_BATCH = 16


def outputs(
    texts: Texts, decoder: Decoder, num_tokens: int
) -> tuple[dict[str, Any], Rows]:
  """Texts that the target generates, in their order.

  Args:
    texts: of a benchmark.
    decoder: the target alone.
    num_tokens: least number of tokens; the batch that reaches it is the last.

  Returns:
    The cell: what it is about, and a row per text.
  """
  rows = []
  for batch in _decode(texts, decoder):
    rows += batch
    if _num_tokens(rows) >= num_tokens:
      break
  return _scored(texts, rows), rows


def again(
    texts: Texts, decoder: Decoder, plain: Rows
) -> tuple[dict[str, Any], Rows]:
  """The very texts of `outputs`, in the same batches, with a draft.

  Args:
    texts: of the benchmark.
    decoder: the target with a draft.
    plain: rows of `outputs`.

  Returns:
    The cell. `identical` counts the texts whose tokens are the plain ones: at
    temperature 0 and without lenience all, but for logits that tie within
    rounding. Where there is a score, the difference to the plain texts' score
    is that of `benchmarks.Comparison`.
  """
  rows, batches = [], _decode(texts, decoder)
  while len(rows) < len(plain):
    rows += next(batches)
  compared = texts.benchmark.compare(
      _predictions(rows), _predictions(plain), _numbers(rows)
  )
  identical = sum(
      ours["tokens"] == theirs["tokens"]
      for ours, theirs in zip(rows, plain, strict=True)
  )
  about = _scored(texts, rows) | {"identical": identical}
  return about | (compared._asdict() if compared else {}), rows


def _decode(texts: Texts, decoder: Decoder) -> Iterator[Rows]:
  """Decodes batch by batch, as far as batches are asked for."""
  for numbers in texts.batches(_BATCH):
    result = decoder(texts.inputs(numbers), example_ids=numbers)
    yield [
        texts.row(number, tokens, counts.emitted)
        for number, tokens, counts in zip(
            numbers, result.tokens, result.per_decode, strict=True
        )
    ]


def _scored(texts: Texts, rows: Rows) -> dict[str, Any]:
  """What decodes are as a whole; no quality where nothing is measured."""
  return {
      "texts": len(rows),
      "tokens": _num_tokens(rows),
      "metric": texts.benchmark.metric_name,
      "quality": texts.benchmark.score(_predictions(rows), _numbers(rows)),
  }


def _predictions(rows: Rows) -> list[str]:
  return [row["prediction"] for row in rows]


def _numbers(rows: Rows) -> list[int]:
  return [row["example"] for row in rows]


def _num_tokens(rows: Rows) -> int:
  return sum(len(row["tokens"]) for row in rows)

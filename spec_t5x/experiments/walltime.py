"""One text, decoded plainly and speculatively, timed in turn."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spec_t5x import metrics
from spec_t5x.decoder import Decoder
from spec_t5x.experiments import timing


class TimedExample:
  """One text of a walltime cell.

  At temperature 1 the two decoders draw different texts. Both are cut to the
  shorter one, so that equal numbers of tokens are timed.
  """

  def __init__(
      self,
      source: str | Sequence[int],
      reference: str,
      number: int,
      plain: Decoder,
      speculative: Decoder,
  ):
    """Decodes once each way, which compiles, and fixes the common length.

    Args:
      source: text, or token ids with EOS.
      reference: what should come out.
      number: of the text in its split; names its random numbers.
      plain: the target alone.
      speculative: the same with a draft.
    """
    both = {"plain": plain, "speculative": speculative}
    self.row = {"example": number, "reference": reference}
    requests, lengths = {}, []
    for which, decoder in both.items():
      requests[which] = decoder.prepare([source], example_ids=[number])
      decoded = timing.timed_decode(decoder, requests[which]).decoded
      lengths.append(int(decoded.counts.emitted[0]))
      self.row[which] = {
          "prediction": plain.vocabulary.decode(decoded.tokens[0]),
          "emitted": lengths[-1],
          "counts": {
              name: np.asarray(value[0]).tolist()
              for name, value in decoded.counts._asdict().items()
          },
          "encode_seconds": [],
          "decode_seconds": [],
      }
    limit = np.full(1, min(lengths), np.int32)
    self.row["tokens"] = int(limit[0])
    self._timed = [
        (
            decoder,
            requests[which]._replace(
                rows=requests[which].rows._replace(limit=limit)
            ),
        )
        for which, decoder in both.items()
    ]

  def time(self, plain_first: bool) -> None:
    """Adds one timed pair to the row."""
    pair = timing.timed_pair(*self._timed, plain_first)
    for which, timed in pair._asdict().items():
      self.row[which]["encode_seconds"].append(timed.encode_seconds)
      self.row[which]["decode_seconds"].append(timed.decode_seconds)


def quality(task: str, rows: list[dict[str, Any]]) -> float:
  """BLEU of translations, ROUGE-2 of summaries, in percent."""
  predictions = [row["prediction"] for row in rows]
  references = [row["reference"] for row in rows]
  if task == "summ":
    return metrics.rouge(predictions, references)["rouge2"]
  return metrics.bleu(predictions, references)

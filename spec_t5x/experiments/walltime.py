"""One text, decoded plainly and speculatively, timed in turn."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from spec_t5x.decoder import Decoder, Request
from spec_t5x.experiments import timing
from spec_t5x.experiments.texts import read
from spec_t5x.types import PAD_ID


class TimedExample:
  """One text of a walltime cell.

  At temperature 1 the two decoders draw different texts. Both are cut to the
  shorter one, so that equal numbers of tokens are timed.
  """

  def __init__(
      self,
      source: str | Sequence[int],
      number: int,
      plain: Decoder,
      speculative: Decoder,
  ):
    """Decodes once each way, which compiles, and fixes the common length.

    Args:
      source: text, or token ids with EOS; a prompt, without, for a
        decoder-only model.
      number: of the text in its split; names its random numbers.
      plain: the target alone.
      speculative: the same with a draft.
    """
    both = {"plain": plain, "speculative": speculative}
    self.row = {"example": number}
    requests, lengths = {}, []
    for which, decoder in both.items():
      requests[which] = decoder.prepare([source], example_ids=[number])
      prompt = _prompt(requests[which])
      decoded = timing.timed_decode(decoder, requests[which]).decoded
      lengths.append(int(decoded.counts.emitted[0]))
      self.row[which] = {
          "prediction": read(
              plain.vocabulary, prompt, decoded.tokens[0, len(prompt) :]
          ),
          "emitted": lengths[-1],
          "counts": {
              name: np.asarray(value[0]).tolist()
              for name, value in decoded.counts._asdict().items()
          },
          "encode_seconds": [],
          "decode_seconds": [],
      }
    self.row["tokens"] = min(lengths)
    limit = np.full(1, len(prompt) + min(lengths), np.int32)
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
      # The same in every pass; not always those of the whole text.
      iterations = timed.decoded.counts.iterations
      self.row[which]["timed_iterations"] = int(iterations[0])


def _prompt(request: Request) -> Int[np.ndarray, " length"]:
  """Token ids that a decode begins with."""
  [prompt] = request.rows.prompt
  return prompt[prompt != PAD_ID]

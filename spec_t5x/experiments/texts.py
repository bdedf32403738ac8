"""The texts of an experiment: as decoders take them, and as people read them.

For a decoder-only model a text is a prompt, or its first tokens are; what
decoding gives begins with it.
"""

import collections
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from spec_t5x import inputs
from spec_t5x.benchmarks import Benchmark
from spec_t5x.model import Model
from spec_t5x.types import EOS_ID
from spec_t5x.vocabulary import Vocabulary


class Texts:
  """Encoded sources of a benchmark.

  Attributes:
    benchmark: texts and their score.
    ids: token ids of every source, by its number.
    numbers: those that are decoded, in order.
  """

  def __init__(
      self, benchmark: Benchmark, target: Model, prompt_tokens: int | None
  ):
    """Encodes the sources.

    Args:
      benchmark: texts and their score.
      target: decodes them; its vocabulary encodes.
      prompt_tokens: a decoder-only model gets so many first tokens of each
        source, and sources that are no longer are left out. None for whole
        sources.

    Raises:
      ValueError: the target has no vocabulary or cannot write what is asked
        for, `prompt_tokens` is for another kind of model, or no text is left.
    """
    self._vocabulary = _vocabulary(target)
    benchmark.check_vocabulary(self._vocabulary)
    decoder_only = target.config.decoder_only
    if prompt_tokens is not None and not decoder_only:
      raise ValueError(
          "`prompt_tokens` must be None for an encoder-decoder target."
          f" Got {prompt_tokens}."
      )
    self.benchmark, self._is_prompt = benchmark, decoder_only
    end = [] if decoder_only else [EOS_ID]
    ids = [self._vocabulary.encode(p.source) + end for p in benchmark.pairs]
    self.numbers = list(range(len(ids)))
    if prompt_tokens is not None:
      self.numbers = [i for i in self.numbers if len(ids[i]) > prompt_tokens]
      ids = [tokens[:prompt_tokens] for tokens in ids]
    self.ids = ids
    if not self.numbers:
      raise ValueError(
          "`prompt_tokens` must be fewer than those of some text."
          f" Got {prompt_tokens}."
      )

  def batches(self, size: int) -> Iterator[list[int]]:
    """Numbers of texts that are decoded together."""
    for first in range(0, len(self.numbers), size):
      yield self.numbers[first : first + size]

  def inputs(self, numbers: Sequence[int]) -> Int[np.ndarray, "batch width"]:
    """What a decoder takes: few widths, so that few programs are compiled."""
    rows = [self.ids[number] for number in numbers]
    return inputs.pad_to(inputs.token_array("texts", rows, 1 << 31))

  def commonest(self, count: int) -> list[int]:
    """Numbers of texts of few widths, spread over all texts of these.

    One width compiles one program, so they are of the commonest one; further
    ones are taken only where `count` texts have not the same.
    """
    widths = {i: inputs.padded_length(len(self.ids[i])) for i in self.numbers}
    chosen = []
    for common, _ in collections.Counter(widths.values()).most_common():
      if len(chosen) < count:
        chosen += [i for i, width in widths.items() if width == common]
    chosen.sort()
    return chosen[:: max(1, len(chosen) // count)][:count]

  def prompt_length(self, number: int) -> int:
    """How many of a decode's first tokens are the text itself."""
    return len(self.ids[number]) if self._is_prompt else 0

  def row(
      self, number: int, tokens: Int[np.ndarray, " length"], emitted: int
  ) -> dict[str, Any]:
    """What is kept of a decode.

    Args:
      number: of the text.
      tokens: of the decode, its prompt included.
      emitted: number of tokens behind the prompt.
    """
    prompt = self.prompt_length(number)
    written = tokens[prompt : prompt + emitted].tolist()
    return {
        "example": number,
        "tokens": written,
        "prediction": read(
            self._vocabulary, self.ids[number][:prompt], written
        ),
        "reference": self.benchmark.pairs[number].target,
    }

  def source(self, number: int) -> str:
    """What the target is given, as text."""
    if not self._is_prompt:
      return self.benchmark.pairs[number].source
    return self._vocabulary.decode(self.ids[number])


def _vocabulary(target: Model) -> Vocabulary:
  if target.vocabulary is None:
    raise ValueError(
        f"`target` must have a vocabulary. {target.name!r} has none."
    )
  return target.vocabulary


def read(
    vocabulary: Vocabulary, prompt: Sequence[int], written: Sequence[int]
) -> str:
  """Text of the tokens behind a prompt, up to EOS."""
  # Alone, the first token would lose the space before it.
  whole = vocabulary.decode([*prompt, *written])
  return whole[len(vocabulary.decode(prompt)) :]

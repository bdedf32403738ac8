r"""Trains a vocabulary, by default the shipped one from its training splits.

python scripts/build_vocabulary.py --output=/tmp/spiece.model
python scripts/build_vocabulary.py --texts=lm1b.txt --output=lm1b.model
"""

import pathlib
from collections.abc import Iterator

import sentencepiece
from absl import app, flags

from spec_t5x import corpora

_OUTPUT = flags.DEFINE_string("output", None, "Model file.", required=True)
_TEXTS = flags.DEFINE_string("texts", None, "File of texts, one a line.")
_SIZE = flags.DEFINE_integer("size", 8000, "Number of pieces.")


def _texts() -> Iterator[str]:
  if _TEXTS.value:
    with pathlib.Path(_TEXTS.value).open(encoding="utf-8") as lines:
      yield from lines
    return
  for task in corpora.PREFIXES:
    for pair in corpora.load_pairs(task, "train"):
      yield pair.source
      yield pair.target


def main(_: list[str]) -> None:
  """Reads the texts and writes the model file."""
  with open(_OUTPUT.value, "wb") as model:
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=_texts(),
        model_writer=model,
        model_type="unigram",
        vocab_size=_SIZE.value,
        # T5's ids (Raffel et al. 2020): PAD doubles as BOS.
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        normalization_rule_name="nmt_nfkc",
        # Characters too rare for a piece are spelt as UTF-8 bytes, so no text
        # is lost to the unknown token.
        character_coverage=0.9998,
        byte_fallback=True,
        # The longest document is about 4,000 bytes; none is left out.
        max_sentence_length=1 << 16,
        # All sentences are used, so there is nothing to draw at random; the
        # order of summation depends on the number of threads.
        num_threads=1,
    )


if __name__ == "__main__":
  app.run(main)

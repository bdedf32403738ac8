"""Texts that a script counts tokens in, as its command line names them.

--task=ende                                      targets of a shipped corpus
--texts=out.txt --vocabulary=DIR/spiece.model    a file, a text in each line
"""

import pathlib
from typing import NamedTuple

from absl import flags

from spec_t5x import corpora, vocabulary

_TASK = flags.DEFINE_enum(
    "task", None, list(corpora.TASKS), "Shipped corpus; its training targets."
)
_TEXTS = flags.DEFINE_string("texts", None, "File of texts, one a line.")
_VOCABULARY = flags.DEFINE_string(
    "vocabulary", str(vocabulary.SHIPPED_PATH), "SentencePiece model."
)


@flags.multi_flags_validator(
    ["task", "texts"], "Exactly one of --task and --texts must be given."
)
def _one_source(values) -> bool:
  return (values["task"] is None) != (values["texts"] is None)


class Encoded(NamedTuple):
  """Texts as token ids.

  Attributes:
    texts: ids of each, EOS included.
    num_ids: of the vocabulary.
  """

  texts: list[list[int]]
  num_ids: int


def encoded() -> Encoded:
  """Reads and encodes the texts.

  Raises:
    FileNotFoundError: there is no such file of texts or vocabulary.
    ValueError: the vocabulary is no SentencePiece model.
  """
  if _TASK.value:
    texts = [pair.target for pair in corpora.load_pairs(_TASK.value, "train")]
  else:
    texts = pathlib.Path(_TEXTS.value).read_text("utf-8").splitlines()
  pieces = vocabulary.Vocabulary(_VOCABULARY.value)
  return Encoded(
      [pieces.encode(text) + [pieces.eos_id] for text in texts], pieces.num_ids
  )

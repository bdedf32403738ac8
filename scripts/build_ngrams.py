r"""Builds an n-gram draft from the targets of a corpus, or from any texts.

  python scripts/build_ngrams.py --task=ende --order=2 --output=bigram.ngram
  python scripts/build_ngrams.py --texts=out.txt --vocabulary=DIR/spiece.model \
    --order=3 --output=trigram.ngram

The texts should be like those that will be decoded: an English-German draft is
built from German, best from decodes of the target itself. Then decode with
`--gin.DRAFT=\"ngram:bigram.ngram\"`.
"""

import pathlib

from absl import app, flags

from spec_t5x import corpora, vocabulary
from spec_t5x.drafts import NgramTable
from spec_t5x.drafts.ngram_table import ORDERS

_TASK = flags.DEFINE_enum(
    "task", None, list(corpora.TASKS), "Shipped corpus to train on."
)
_TEXTS = flags.DEFINE_string("texts", None, "File of texts, one a line.")
_ORDER = flags.DEFINE_enum(
    "order", "2", [str(order) for order in ORDERS], "1 = unigrams."
)
_MAX_CONTINUATIONS = flags.DEFINE_integer(
    "max_continuations", 64, "Most tokens kept behind each context."
)
_VOCABULARY = flags.DEFINE_string(
    "vocabulary", str(vocabulary.SHIPPED_PATH), "SentencePiece model."
)
_OUTPUT = flags.DEFINE_string("output", None, "File.", required=True)


@flags.multi_flags_validator(
    ["task", "texts"], "Exactly one of --task and --texts must be given."
)
def _one_source(values) -> bool:
  return (values["task"] is None) != (values["texts"] is None)


def main(_: list[str]) -> None:
  """Reads the texts once and writes the table."""
  if _TASK.value:
    texts = [pair.target for pair in corpora.load_pairs(_TASK.value, "train")]
  else:
    texts = pathlib.Path(_TEXTS.value).read_text("utf-8").splitlines()
  pieces = vocabulary.Vocabulary(_VOCABULARY.value)
  table = NgramTable.build(
      (pieces.encode(text) + [pieces.eos_id] for text in texts),
      int(_ORDER.value),
      pieces.num_ids,
      _MAX_CONTINUATIONS.value,
  )
  path = table.save(_OUTPUT.value)
  print(f"{path}: {len(texts)} texts, {path.stat().st_size:,} bytes.")


if __name__ == "__main__":
  app.run(main)

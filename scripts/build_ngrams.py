r"""Builds an n-gram draft from the targets of a corpus, or from any texts.

  python scripts/build_ngrams.py --task=ende --order=2 --output=bigram.ngram
  python scripts/build_ngrams.py --texts=out.txt --vocabulary=DIR/spiece.model \
    --order=3 --output=trigram.ngram

The texts should be like those that will be decoded: an English-German draft is
built from German, best from decodes of the target itself. Then decode with
`--gin.DRAFT=\"ngram:bigram.ngram\"`.
"""

from absl import app, flags

from spec_t5x import text_flags
from spec_t5x.drafts import NgramTable
from spec_t5x.drafts.ngram_table import ORDERS

_ORDER = flags.DEFINE_enum(
    "order", "2", [str(order) for order in ORDERS], "1 = unigrams."
)
_MAX_CONTINUATIONS = flags.DEFINE_integer(
    "max_continuations", 64, "Most tokens kept behind each context."
)
_OUTPUT = flags.DEFINE_string("output", None, "File.", required=True)


def main(_: list[str]) -> None:
  """Reads the texts once and writes the table."""
  texts, num_ids = text_flags.encoded()
  table = NgramTable.build(
      texts, int(_ORDER.value), num_ids, _MAX_CONTINUATIONS.value
  )
  path = table.save(_OUTPUT.value)
  print(f"{path}: {len(texts)} texts, {path.stat().st_size:,} bytes.")


if __name__ == "__main__":
  app.run(main)

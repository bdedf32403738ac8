r"""Lists the commonest tokens of a corpus' targets, or of any texts.

  python scripts/build_shortlist.py --task=ende --size=2048 --output=ende.txt
  python scripts/build_shortlist.py --texts=out.txt --size=4096 \
    --vocabulary=DIR/spiece.model --output=mine.txt

The texts should be like those that will be decoded. Then decode with
`--gin.DRAFT=\"shortlist:ende.txt+path/to/draft\"`: the draft proposes these
tokens and no others, and its steps take less time.
"""

import pathlib

from absl import app, flags

from spec_t5x import corpora, shortlist, vocabulary

_TASK = flags.DEFINE_enum(
    "task", None, list(corpora.TASKS), "Shipped corpus to count tokens of."
)
_TEXTS = flags.DEFINE_string("texts", None, "File of texts, one a line.")
_SIZE = flags.DEFINE_integer("size", 2048, "Most tokens to list.")
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
  """Reads the texts once and writes the list."""
  if _TASK.value:
    texts = [pair.target for pair in corpora.load_pairs(_TASK.value, "train")]
  else:
    texts = pathlib.Path(_TEXTS.value).read_text("utf-8").splitlines()
  pieces = vocabulary.Vocabulary(_VOCABULARY.value)
  encoded = [pieces.encode(text) + [pieces.eos_id] for text in texts]
  ids = shortlist.commonest(encoded, _SIZE.value)
  listed = set(ids)
  total = sum(map(len, encoded))
  covered = sum(token in listed for text in encoded for token in text)
  path = shortlist.save(ids, _OUTPUT.value)
  print(
      f"{path}: {len(ids):,} tokens, {covered / total:.1%} of the {total:,} in"
      f" {len(texts):,} texts."
  )


if __name__ == "__main__":
  app.run(main)

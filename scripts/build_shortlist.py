r"""Lists the commonest tokens of a corpus' targets, or of any texts.

  python scripts/build_shortlist.py --task=ende --size=2048 --output=ende.txt
  python scripts/build_shortlist.py --texts=out.txt --size=4096 \
    --vocabulary=DIR/spiece.model --output=mine.txt

The texts should be like those that will be decoded. Then decode with
`--gin.DRAFT=\"shortlist:ende.txt+path/to/draft\"`: the draft proposes these
tokens and no others, and its steps take less time.
"""

from absl import app, flags

from spec_t5x import shortlist, text_flags

_SIZE = flags.DEFINE_integer("size", 2048, "Most tokens to list.")
_OUTPUT = flags.DEFINE_string("output", None, "File.", required=True)


def main(_: list[str]) -> None:
  """Reads the texts once and writes the list."""
  texts = text_flags.encoded().texts
  ids = shortlist.commonest(texts, _SIZE.value)
  listed = set(ids)
  total = sum(map(len, texts))
  covered = sum(token in listed for text in texts for token in text)
  path = shortlist.save(ids, _OUTPUT.value)
  print(
      f"{path}: {len(ids):,} tokens, {covered / total:.1%} of the {total:,} in"
      f" {len(texts):,} texts."
  )


if __name__ == "__main__":
  app.run(main)

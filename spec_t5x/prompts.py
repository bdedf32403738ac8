"""Prompts for decoder-only models, and where their answers end.

A model that continues a prompt goes on behind its answer, with the next
article or the next function. The decoding loop ends a text at EOS alone; stop
sequences are looked for afterwards, in the text, and what they cut was decoded
and counts in times and acceptance like the rest.
"""

from collections.abc import Sequence

from spec_t5x.corpora import Pair

# Not printed by Chen et al. 2023, who say that the prompt has one example.
_ARTICLE, _SUMMARY = "Article:", "Summary:"
# A vocabulary without line breaks, such as T5's, writes spaces for them.
ONE_SHOT_STOPS = ("\n", _ARTICLE)


def one_shot(example: Pair, document: str) -> str:
  """Returns a prompt for a summary, behind one example of the same.

  Args:
    example: a document and its summary.
    document: to be summarised.
  """
  shown = " ".join(example.source.split())
  asked = " ".join(document.split())
  return (
      f"{_ARTICLE} {shown}\n{_SUMMARY} {example.target}\n\n"
      f"{_ARTICLE} {asked}\n{_SUMMARY}"
  )


def cut(text: str, stops: Sequence[str]) -> str:
  """Returns a text up to the first stop sequence, which is left out.

  Args:
    text: what the model wrote behind the prompt.
    stops: stop sequences, in any order.

  Raises:
    ValueError: a stop sequence is empty.
  """
  if not all(stops):
    raise ValueError(f"`stops` must not hold an empty text. Got {stops!r}.")
  places = [text.find(stop) for stop in stops]
  return text[: min((p for p in places if p >= 0), default=len(text))]

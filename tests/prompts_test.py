"""Tests of the prompts and of where answers are cut."""

import pytest

from spec_t5x import prompts
from spec_t5x.corpora import Pair


def test_one_shot_shows_one_example_and_asks_for_the_next():
  example = Pair("It rained.\nA lot.", "Rain.", "xsum:0")
  assert prompts.one_shot(example, "It  snowed.\n") == (
      "Article: It rained. A lot.\nSummary: Rain.\n\n"
      "Article: It snowed.\nSummary:"
  )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" Snow.\n\nArticle: It hailed.", " Snow."),
        # Line breaks are lost on T5's vocabulary.
        (" Snow. Article: It hailed.", " Snow. "),
        (" Snow.", " Snow."),
        ("Article: at once", ""),
        ("", ""),
    ],
)
def test_answers_end_before_the_first_stop_sequence(text, expected):
  assert prompts.cut(text, prompts.ONE_SHOT_STOPS) == expected


def test_the_first_place_counts_not_the_first_stop():
  assert prompts.cut("a-b+c", ["+", "-"]) == "a"
  assert prompts.cut("a-b+c", []) == "a-b+c"


def test_an_empty_stop_is_refused():
  with pytest.raises(ValueError, match="`stops` must not hold an empty text"):
    prompts.cut("a", ["b", ""])

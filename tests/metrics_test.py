"""Tests of the text metrics against values worked out by hand."""

import math

import pytest
import sacrebleu

from spec_t5x import corpora, metrics


def test_bleu_of_equal_texts_is_100():
  texts = ["Wählen Sie die Option Speichern.", "Klicken Sie auf OK."]
  assert metrics.bleu(texts, texts) == pytest.approx(100)


def test_bleu_by_hand():
  # Of 6, 5, 4 and 3 n-grams all but one each are right:
  # (5/6 4/5 3/4 2/3)^(1/4) = (1/3)^(1/4).
  score = metrics.bleu(["a b c d e f"], ["a b c d e g"])
  assert score == pytest.approx(100 * (1 / 3) ** 0.25)


def test_bleu_punishes_short_predictions_only():
  short, long = ["a b c d e"], ["a b c d e f"]
  assert metrics.bleu(short, long) == pytest.approx(100 * math.exp(1 - 6 / 5))
  # 5/6 4/5 3/4 2/3 again, and no penalty for length.
  assert metrics.bleu(long, short) == pytest.approx(100 * (1 / 3) ** 0.25)


def test_bleu_is_that_of_sacrebleu():
  """Counts of single texts add up to the corpus' own."""
  pairs = corpora.load_pairs("ende", "test")[:60]
  references = [pair.target for pair in pairs]
  texts = [reference.replace("en ", "en, ") for reference in references]
  texts[0] = ""
  expected = sacrebleu.corpus_bleu(texts, [references], tokenize="intl").score
  assert 10 < expected < 90
  assert metrics.bleu(texts, references) == pytest.approx(expected)
  # No 4-gram is right, which is smoothed.
  expected = sacrebleu.corpus_bleu(["a b c d e"], [["a b c e d"]]).score
  assert expected > 0
  score = metrics.bleu(["a b c d e"], ["a b c e d"])
  assert score == pytest.approx(expected)


def test_rouge_by_hand():
  # Words: 3 of 3 and 3 of 4. Pairs: 1 of 2 and 1 of 3. Subsequence: a b c.
  scores = metrics.rouge(["a b c"], ["a b d c"])
  expected = {"rouge1": 600 / 7, "rouge2": 40, "rougeL": 600 / 7}
  assert scores == pytest.approx(expected)


def test_rouge_is_the_mean_over_texts():
  scores = metrics.rouge(["a b", "x y"], ["a b", "p q"])
  assert scores == pytest.approx({"rouge1": 50, "rouge2": 50, "rougeL": 50})


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("", False),
        ("the the the the the the", True),
        ("very very very very good", False),
        ("say a b c a b c a b c a b c", True),
        ("say a b c a b c a b c", False),
        ("a b a b a b a c", False),
        ("of a b a b a b a b and so on", True),
        ("click OK to open the dialog and click OK to close the dialog", False),
    ],
)
def test_what_is_a_loop(text, loops):
  assert metrics.looping_fraction([text]) == loops


def test_loops_are_found_in_token_ids_too():
  outputs = [[7, 8, 9] * 4, list(range(12)), [3] * 6, [3] * 5]
  assert metrics.looping_fraction(outputs) == 0.5


def test_no_predictions_do_not_loop():
  assert metrics.looping_fraction([]) == 0


@pytest.mark.parametrize("task", corpora.PREFIXES)
def test_human_texts_do_not_loop(task):
  texts = [p.target for p in corpora.load_pairs(task, "validation")]
  assert metrics.looping_fraction(texts) == 0


@pytest.mark.parametrize("metric", [metrics.bleu, metrics.rouge])
@pytest.mark.parametrize(("predictions", "references"), [([], []), (["a"], [])])
def test_unpaired_texts_are_refused(metric, predictions, references):
  message = f"as many, and at least one. Got {len(predictions)} and 0"
  with pytest.raises(ValueError, match=message):
    metric(predictions, references)


def test_one_repetition_is_no_loop():
  with pytest.raises(ValueError, match="`repeats` must be at least 2. Got 1"):
    metrics.looping_fraction(["a"], repeats=1)

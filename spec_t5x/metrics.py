"""Quality of written texts: BLEU, ROUGE, and how many run in circles."""

from collections.abc import Hashable, Sequence

import sacrebleu

__all__ = ["bleu", "looping_fraction", "rouge"]

_ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")


def bleu(
    predictions: Sequence[str],
    references: Sequence[str],
    tokenize: str = "intl",
) -> float:
  """Corpus BLEU (Papineni et al. 2002) as sacrebleu computes it.

  Args:
    predictions: Texts the model wrote.
    references: The text each should have been.
    tokenize: sacrebleu's tokenizer. T5 reports "intl", most other papers
      "13a".

  Returns:
    BLEU, 0 to 100.

  Raises:
    ValueError: There are no texts, or not one reference per prediction.
  """
  _check_pairs(predictions, references)
  score = sacrebleu.corpus_bleu(
      list(predictions), [list(references)], tokenize=tokenize
  )
  return score.score


def rouge(
    predictions: Sequence[str], references: Sequence[str]
) -> dict[str, float]:
  """Mean ROUGE F-measures (Lin 2004), without stemming.

  Args:
    predictions: Texts the model wrote.
    references: The text each should have been.

  Returns:
    `rouge1`, `rouge2` (common words and word pairs) and `rougeL` (longest
    common subsequence of the whole text), each 0 to 100.

  Raises:
    ValueError: There are no texts, or not one reference per prediction.
  """
  # Imported here as it takes seconds, which users of the rest need not wait.
  from rouge_score import rouge_scorer

  _check_pairs(predictions, references)
  scorer = rouge_scorer.RougeScorer(_ROUGE_TYPES)
  scores = [
      scorer.score(reference, prediction)
      for prediction, reference in zip(predictions, references, strict=True)
  ]
  return {
      name: 100 * sum(score[name].fmeasure for score in scores) / len(scores)
      for name in _ROUGE_TYPES
  }


def looping_fraction(
    predictions: Sequence[str | Sequence[Hashable]],
    repeats: int = 4,
    min_length: int = 6,
) -> float:
  """Share of outputs that say the same thing again and again.

  A badly trained model decoded greedily falls into a loop, which any draft
  predicts perfectly: a high acceptance rate on such outputs means nothing.

  Args:
    predictions: Texts, taken word by word, or sequences of token ids.
    repeats: An output loops if a phrase stands this often in a row ...
    min_length: ... over at least this many words, so that a short emphasis
      is no loop.

  Returns:
    A share from 0 to 1; 0 if there are no predictions.

  Raises:
    ValueError: `repeats` is less than 2.
  """
  if repeats < 2:
    raise ValueError(f"`repeats` must be at least 2. Got {repeats}.")
  num_looping = sum(
      _loops(p.split() if isinstance(p, str) else list(p), repeats, min_length)
      for p in predictions
  )
  return num_looping / max(len(predictions), 1)


def _loops(words: Sequence[Hashable], repeats: int, min_length: int) -> bool:
  for period in range(1, len(words) // repeats + 1):
    # A phrase of `period` words stands r times in a row exactly where
    # (r - 1) * period words in a row equal the word one period earlier.
    required = max(repeats * period, min_length) - period
    run = 0
    for word, earlier in zip(words[period:], words, strict=False):
      run = run + 1 if word == earlier else 0
      if run == required:
        return True
  return False


def _check_pairs(predictions: Sequence[str], references: Sequence[str]) -> None:
  if not predictions or len(predictions) != len(references):
    raise ValueError(
        "`predictions` and `references` must be as many, and at least one. "
        f"Got {len(predictions)} and {len(references)}."
    )

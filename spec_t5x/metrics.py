"""Quality of written texts: BLEU, ROUGE, and how many run in circles."""

from collections.abc import Callable, Hashable, Sequence

import numpy as np
import sacrebleu
from jaxtyping import Float, Int, Shaped

__all__ = [
    "bleu",
    "bleu_counts",
    "bleu_of_counts",
    "looping_fraction",
    "paired_interval",
    "rouge",
    "rouge_of_each",
]

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
  counts = bleu_counts(predictions, references, tokenize)
  return bleu_of_counts(counts.sum(axis=0))


def bleu_counts(
    predictions: Sequence[str],
    references: Sequence[str],
    tokenize: str = "intl",
) -> Int[np.ndarray, "texts counts"]:
  """What BLEU counts in each text; those of a corpus are their sum.

  Args:
    predictions: Texts the model wrote.
    references: The text each should have been.
    tokenize: See `bleu`.

  Returns:
    Of n = 1 to 4 the n-grams that are right, then all n-grams, then the
    lengths of prediction and reference.

  Raises:
    ValueError: There are no texts, or not one reference per prediction.
  """
  _check_pairs(predictions, references)
  # `effective_order` is about the score of one sentence, which is not asked
  # for; without it, sacrebleu warns of that score.
  metric = sacrebleu.BLEU(tokenize=tokenize, effective_order=True)
  scores = [
      metric.sentence_score(prediction, [reference])
      for prediction, reference in zip(predictions, references, strict=True)
  ]
  return np.array(
      [[*s.counts, *s.totals, s.sys_len, s.ref_len] for s in scores]
  )


def bleu_of_counts(counts: Shaped[np.ndarray, " counts"]) -> float:
  """Corpus BLEU, 0 to 100, of summed `bleu_counts`."""
  right, total, lengths = np.split(counts, [4, 8])
  score = sacrebleu.BLEU.compute_bleu(
      list(right), list(total), *lengths, smooth_method="exp"
  )
  return float(score.score)


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
  scores = rouge_of_each(predictions, references)
  return {name: float(values.mean()) for name, values in scores.items()}


def rouge_of_each(
    predictions: Sequence[str], references: Sequence[str]
) -> dict[str, Float[np.ndarray, " texts"]]:
  """The F-measures that `rouge` averages, each 0 to 100.

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
      name: np.array([100 * score[name].fmeasure for score in scores])
      for name in _ROUGE_TYPES
  }


def paired_interval(
    first: Shaped[np.ndarray, "texts parts"],
    second: Shaped[np.ndarray, "texts parts"],
    combine: Callable[[Shaped[np.ndarray, " parts"]], float],
    resamples: int = 1000,
) -> tuple[float, float]:
  """A 95% interval of how much higher the second of two scores is.

  Texts are drawn anew, with replacement, and each time the same ones for both
  (Koehn 2004, "Statistical Significance Tests for Machine Translation
  Evaluation"). So what makes a text hard for both is not counted as chance.

  Args:
    first: What is known of each text, decoded one way.
    second: The same, decoded another way.
    combine: The score of summed parts.
    resamples: How often texts are drawn.
  """
  texts = len(first)
  times = np.random.default_rng(0).multinomial(
      texts, np.full(texts, 1 / texts), resamples
  )
  drawn = zip(times @ first, times @ second, strict=True)
  differences = [combine(b) - combine(a) for a, b in drawn]
  low, high = np.percentile(differences, [2.5, 97.5])
  return float(low), float(high)


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

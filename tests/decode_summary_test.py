"""Tests of a decode job's summary."""

import io

import pytest
from rich.console import Console

from spec_t5x.decode_batches import BatchResult
from spec_t5x.decode_summary import Summary
from spec_t5x.statistics import DecodeStatistics

COUNTS = DecodeStatistics(
    accept_counts=(2, 1, 1),
    position_tested=(4, 2),
    position_accepted=(2, 1),
    position_overlap=(2.4, 1.8),
    iterations=4,
    emitted=7,
)


def summary_of(block_verification):
  results = [
      BatchResult(i, [i], [{}], COUNTS, seconds, is_first=i == 0)
      for i, seconds in enumerate((10.0, 2.0))
  ]
  return Summary.pool("a/" * 99 + "out", block_verification, results)


def shown(summary):
  console = Console(file=io.StringIO(), width=80)
  console.print(summary.table())
  return console.file.getvalue()


def test_alpha_is_accepted_over_tested():
  summary = summary_of(block_verification=False)
  assert summary.alpha == 0.5
  assert summary.to_dict()["alpha"] == 0.5
  assert "0.500 (95 % interval" in shown(summary)


def test_alpha_of_block_verification_is_the_mean_overlap():
  """Whole blocks are accepted or not: counts of tokens estimate no alpha."""
  summary = summary_of(block_verification=True)
  assert summary.alpha == pytest.approx(4.2 / 6)
  assert "0.700 (mean overlap of the laws at 12 tokens)" in shown(summary)


def test_long_path_is_shown_whole():
  text = shown(summary_of(False))
  assert "a/" * 99 + "out" in text.replace("\n", "").replace(" ", "")


def test_speed_leaves_out_first_batches():
  assert summary_of(False).tokens_per_second == 3.5


@pytest.mark.parametrize("block_verification", [False, True])
def test_comes_back_from_its_dictionary(block_verification):
  summary = summary_of(block_verification)
  assert Summary.from_dict(summary.to_dict()) == summary

import dataclasses
import json
import math

import numpy as np
import pytest
from scipy import stats

from spec_t5x.statistics import DecodeStatistics


def statistics(gamma=4, accepted=(), emitted=None):
  """Counts of a run in which each iteration accepted that many tokens."""
  accepted = np.asarray(accepted, int)
  places = np.arange(gamma)[:, None]
  tested = (places <= accepted).sum(axis=1)
  stands = (places < accepted).sum(axis=1)
  return DecodeStatistics.from_row(
      np.bincount(accepted, minlength=gamma + 1),
      tested,
      stands,
      0.75 * tested,
      len(accepted),
      accepted.sum() + len(accepted) if emitted is None else emitted,
  )


EMPTY = statistics(accepted=[])


def test_ratios_come_from_the_counts():
  run = statistics(4, [4, 0, 2])
  assert run.accept_counts == (1, 0, 1, 0, 1)
  assert (run.tested, run.accepted) == (4 + 1 + 3, 6)
  assert run.alpha_hat == 6 / 8
  assert run.alpha_exact == 0.75
  assert (run.iterations, run.target_calls, run.emitted) == (3, 3, 9)
  assert run.block_efficiency == 3
  assert run.position_acceptance == (2 / 3, 1, 1 / 2, 1)


# public bug: accept rate > 1 (bonus token counted).
def test_draft_that_is_always_accepted_has_alpha_one():
  run = statistics(4, [4] * 10)
  assert run.alpha_hat == 1
  assert run.block_efficiency == 5
  assert run.alpha_interval()[1] == pytest.approx(1)


# public bug: accept rate > 1. Such counts cannot even be made.
def test_more_accepted_than_tested_is_refused():
  run = statistics(2, [2, 1])
  with pytest.raises(ValueError, match="must not exceed `position_tested`"):
    dataclasses.replace(run, position_accepted=(3, 1))


# public bug: tau counts tokens after EOS. Block [d, d, EOS, d, d] and a next
# token: three tokens count, three tests, and no rejection.
def test_tokens_behind_eos_count_nowhere():
  run = DecodeStatistics.from_row(
      [0, 0, 0, 1, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [1] * 5, 1, 3
  )
  assert run.block_efficiency == 3
  assert run.alpha_hat == 1
  np.testing.assert_array_equal(
      run.position_acceptance, [1, 1, 1, math.nan, math.nan]
  )


# public bug: iterations cut short by the length limit counted as rejections.
def test_untested_tokens_are_no_rejections():
  full = statistics(3, [3])
  cut = DecodeStatistics.from_row(
      [0, 1, 0, 0], [1, 0, 0], [1, 0, 0], [1] * 3, 1, 1
  )
  assert (full + cut).alpha_hat == 1


# public bug: mean of per-sample ratios, 42 % too low.
def test_pooled_ratios_are_not_means_of_ratios():
  short = [statistics(4, [0]) for _ in range(7)]
  long = statistics(4, [4] * 50)
  pooled = DecodeStatistics.pool([*short, long])
  assert pooled.alpha_hat == 200 / 207
  assert pooled.block_efficiency == 257 / 57
  mean = np.mean([row.block_efficiency for row in [*short, long]])
  assert mean < 0.4 * pooled.block_efficiency


def test_pooling_adds_every_count():
  parts = [statistics(3, [3, 1]), statistics(3, [0]), statistics(3, [2, 2, 3])]
  together = statistics(3, [3, 1, 0, 2, 2, 3])
  assert DecodeStatistics.pool(parts) == together
  assert parts[0] + parts[1] + parts[2] == together
  assert DecodeStatistics.pool(iter(parts)) == together
  assert statistics(3) + together == together


@pytest.mark.parametrize(
    ("parts", "got"),
    [
        ([statistics(3, [1]), statistics(4, [1])], r"Got \[3, 4\]"),
        ([], r"Got \[\]"),
    ],
)
def test_different_gammas_do_not_pool(parts, got):
  with pytest.raises(ValueError, match="must be of one gamma. " + got):
    DecodeStatistics.pool(parts)


@pytest.mark.filterwarnings("error")
def test_empty_counts_are_nan_without_warnings():
  ratios = [EMPTY.alpha_hat, EMPTY.alpha_exact, EMPTY.block_efficiency]
  ratios += [*EMPTY.alpha_interval(), *EMPTY.position_acceptance]
  assert np.isnan(ratios).all()


def test_plain_decoding():
  run = statistics(0, [0, 0, 0])
  assert (run.gamma, run.accept_counts) == (0, (3,))
  assert run.block_efficiency == 1
  assert math.isnan(run.alpha_hat)
  assert run.position_acceptance == ()
  assert run + run == statistics(0, [0] * 6)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize(("accepted", "tested"), [(0, 5), (3, 7), (900, 1000)])
def test_interval_is_wilsons(accepted, tested, confidence):
  run = DecodeStatistics.from_row(
      [tested - accepted, accepted], [tested], [accepted], [0], tested, tested
  )
  expected = stats.binomtest(accepted, tested).proportion_ci(
      confidence, method="wilson"
  )
  interval = run.alpha_interval(confidence)
  np.testing.assert_allclose(interval, tuple(expected), atol=1e-12)


# 2000 runs of 300 tests: coverage 0.95 with standard error 0.005; a false
# alarm at 5 standard errors has probability 6e-7. Fixed seed.
def test_interval_covers_alpha_as_often_as_it_says():
  accepted = np.random.default_rng(0).binomial(300, 0.8, size=2000)

  def coverage(claimed):
    runs = [
        DecodeStatistics.from_row([300 - n, n], [300], [n], [0], 300, 300)
        for n in accepted
    ]
    intervals = np.array([run.alpha_interval(claimed) for run in runs])
    return ((intervals[:, 0] <= 0.8) & (0.8 <= intervals[:, 1])).mean()

  assert abs(coverage(0.95) - 0.95) < 5 * 0.005
  assert abs(coverage(0.9) - 0.95) > 5 * 0.005  # the check can fail


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95, math.nan])
def test_confidence_out_of_range(confidence):
  with pytest.raises(ValueError, match=r"`confidence` must be in \(0, 1\)"):
    EMPTY.alpha_interval(confidence)


def test_counts_survive_json():
  run = statistics(3, [3, 1, 0])
  text = json.dumps(run.to_dict())
  assert DecodeStatistics.from_row(**json.loads(text)) == run


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(position_tested=(1,)), "`position_tested` must have gamma = 3"),
        (dict(position_overlap=()), "`position_overlap` must have gamma = 3"),
        (dict(accept_counts=(1, 2)), "must have gamma = 1 entries"),
        (dict(emitted=-1), "Counts must not be negative"),
        (dict(position_accepted=(0, 0, -1)), "Counts must not be negative"),
    ],
)
def test_impossible_counts_are_refused(change, message):
  with pytest.raises(ValueError, match=message):
    dataclasses.replace(statistics(3, [3, 1]), **change)

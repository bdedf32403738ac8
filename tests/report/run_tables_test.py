"""Tables of a run whose laws are known: the numbers are theirs."""

import math

import pytest
import toy_results

from spec_t5x import theory
from spec_t5x.report import (
    lenience_tables,
    measures,
    position_tables,
    prediction_tables,
    reprojection_tables,
    sections,
    tables,
    timeline,
    traces,
)
from spec_t5x.statistics import DecodeStatistics

DRAFTS = {"small": "shipped:s", "bigram": "ngram:b"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
  return toy_results.write(tmp_path_factory.mktemp("results"), drafts=DRAFTS)


def find(rows, **about):
  [row] = [r for r in rows if all(r[key] == about[key] for key in about)]
  return row


def test_costs_are_the_known_ones(run):
  row = find(tables.walltime_rows(run), draft="small", temperature=1, gamma=7)
  assert row["cost_coefficient"] == pytest.approx(0.05)
  assert row["verify_ratio"] == pytest.approx(1.35)
  assert row["alpha"] == pytest.approx(0.63)
  assert row["target_milliseconds"] == pytest.approx(10 + 20 / 30)


def test_all_steps_foretell_a_speed_made_of_them(run):
  """The toy's loop costs nothing besides calls: one form must be right."""
  for row in prediction_tables.rows(run):
    v = toy_results.verify_ratio(row["gamma"])
    c = toy_results.COSTS[row["draft"]]
    true = row["tokens_measured"] / (v + c * (row["gamma"] + 0.5))
    assert row["decode_speed"] == pytest.approx(true)
    assert row["speed_all_steps"] == pytest.approx(
        true * row["tokens_by_place"] / row["tokens_measured"]
    )
    assert row["speed_places"] == pytest.approx(
        row["tokens_by_place"] / (v + c * row["gamma"])
    )
    assert row["speed_c_and_v"] == pytest.approx(
        row["tokens_alike"] / (v + c * row["gamma"])
    )
    assert row["speed_c"] == pytest.approx(
        row["tokens_alike"] / (1 + c * row["gamma"])
    )


def test_errors_are_those_of_the_rows(run):
  rows = prediction_tables.rows(run)
  by_form = {row["form"]: row for row in prediction_tables.errors(rows)}
  ratios = [row["speed_c"] / row["decode_speed"] - 1 for row in rows]
  assert by_form["c"]["cells"] == len(rows) == 2 * 2 * 3
  assert by_form["c"]["mean_error"] == pytest.approx(sum(ratios) / len(ratios))
  assert by_form["c"]["worst"] == max(ratios, key=abs)
  assert prediction_tables.errors([]) == []
  assert (
      by_form["all steps"]["mean_absolute_error"]
      < by_form["c"]["mean_absolute_error"] / 3
  )


def test_distance_is_what_lenience_accepts_more(run):
  rows = lenience_tables.rows(run)
  for row in rows:
    exact = find(
        rows, draft=row["draft"], temperature=row["temperature"], lenience=1
    )
    assert row["distance"] == pytest.approx(row["alpha"] - exact["alpha"])
    assert exact["distance"] == 0
  row = find(rows, draft="small", temperature=1, lenience=0.1)
  rate = toy_results.rate_of("small", 1, 0.1) - toy_results.rate_of("small", 1)
  assert row["distance"] == pytest.approx(rate)
  assert row["gamma"] == 3
  assert row["measured_speed"] > 1
  assert (row["target_quality"], row["speculative_quality"]) == (30, 21)
  assert [row[f"difference{end}"] for end in ("", "_low", "_high")] == [
      -9,
      -10,
      -8,
  ]
  costs = 1.15, 0.05
  assert row["predicted_speed"] == pytest.approx(
      theory.walltime_improvement(row["alpha"], 3, costs[1], costs[0])
  )


def test_the_papers_lenient_speeds_are_found(run):
  rows = lenience_tables.rows(run)
  speed = lambda **about: find(rows, **about)["paper_speed"]
  assert speed(draft="small", temperature=1, lenience=0.5) == 3.1
  assert speed(draft="small", temperature=0, lenience=0.1) == 4.9
  assert speed(draft="bigram", temperature=1, lenience=0.5) is None


def test_places_are_counted(run):
  rows = position_tables.rows(run)
  cell = [
      r
      for r in rows
      if (r["draft"], r["temperature"], r["gamma"]) == ("small", 0, 7)
  ]
  assert [row["place"] for row in cell] == list(range(1, 8))
  for before, after in zip(cell, cell[1:], strict=False):
    assert after["tested"] <= before["accepted"] <= before["tested"]
    assert before["rate_low"] < before["rate"] < before["rate_high"]
  assert position_tables.of_longest_blocks(rows) == [
      row for row in rows if row["gamma"] == 7
  ]
  head = [str(column) for column in position_tables.table(rows).columns]
  assert head[2:9] == [f"place {place} (measured)" for place in range(1, 8)]


def counts(tested, accepted):
  """Statistics of two places."""
  return DecodeStatistics((1, 1, 1), tested, accepted, (0.0, 0.0), 3, 6)


def test_homogeneity_against_the_closed_form():
  # Pooled rate 0.5; each place is 10 off 50, variance 25: 4 + 4, 1 degree.
  statistic, p_value = position_tables.homogeneity(counts((100, 100), (60, 40)))
  assert statistic == pytest.approx(8)
  assert p_value == pytest.approx(math.erfc(2), rel=1e-4)
  assert position_tables.homogeneity(counts((90, 90), (45, 45)))[1] == 1
  for degenerate in (((10, 0), (4, 0)), ((10, 10), (10, 10))):
    assert math.isnan(position_tables.homogeneity(counts(*degenerate))[1])


def test_homogeneity_is_noticed_only_if_it_is_missing(tmp_path):
  """The toy has one rate for all places; a control has not."""
  # Of 8 cells one below 1e-4 by chance: 1 time in 1,250.
  rows = position_tables.rows(toy_results.write(tmp_path, drafts=DRAFTS))
  assert min(row["p_value"] for row in rows if row["gamma"] > 1) > 1e-4
  falling = toy_results.write(
      tmp_path,
      run="falling",
      drafts={"small": "s"},
      rates=lambda draft, place: 0.9 / (1 + place),
  )
  rows = position_tables.rows(falling)
  assert max(row["p_value"] for row in rows if row["gamma"] > 1) < 1e-4


def test_a_timeline_is_made_of_its_calls(run):
  rows = timeline.rows(run)
  assert [row["gamma"] for row in rows] == [7, 3, 0] * 2
  for row in rows:
    blocks = timeline.blocks(row)
    kinds = [kind for kind, _, _ in blocks]
    assert kinds.count("target call") == row["target_calls"]
    assert kinds.count("draft step") == row["draft_steps"]
    assert row["draft_steps"] == row["target_calls"] * row["gamma"]
    _, start, length = blocks[-1]
    assert start + length == pytest.approx(row["parts_ms"])
    # The toy's loop takes no time of its own.
    assert row["parts_ms"] == pytest.approx(row["measured_ms"])
  assert rows[2]["target_calls"] == rows[2]["tokens"] == 30
  assert rows[2]["parts_ms"] == pytest.approx(320)


def test_no_timeline_without_argmax(tmp_path):
  run = toy_results.write(tmp_path, drafts=DRAFTS, temperatures=(1.0,))
  assert timeline.rows(run) == []


def test_traces_are_read_back(run):
  [traced] = [t for t in traces.read(run) if t.name == "trace-small-t0"]
  assert traced.count("accepted") == 4
  assert traced.pieces.piece(10) == " <rejected & 10>"
  assert [segment.kind for segment in traced.iterations[1]] == [
      "accepted",
      "rejected",
      "target",
      "untested",
  ]


def test_reprojection(tmp_path):
  run = toy_results.write_reprojection(tmp_path)
  short, long = reprojection_tables.rows(run)
  assert (short["length"], long["length"]) == (64, 512)
  assert long["step_ratio"] == pytest.approx(1.3)
  assert long["plain_ratio_every_step"] == pytest.approx(1.3)
  assert long["plain_ratio_as_written"] == pytest.approx(1.01)
  assert long["speed_once"] == pytest.approx(2)
  assert long["speed_against_reprojecting"] == pytest.approx(2.6)
  programs = reprojection_tables.programs(run)
  assert [row["matmuls_in_loops"] for row in programs] == [41, 41, 49]


def test_work_on_a_tpu_is_priced_by_the_roofline(tmp_path):
  run = toy_results.write_work(tmp_path)
  [row] = reprojection_tables.work(run)
  assert row["step_ms"] == pytest.approx(1e3)
  assert row["step_ratio"] == pytest.approx(1.5)


def test_every_section_holds_its_columns(run, tmp_path):
  others = [
      toy_results.write_reprojection(tmp_path),
      toy_results.write_work(tmp_path),
  ]
  for section in sections.SECTIONS:
    rows = [row for each in (run, *others) for row in section.rows(each)]
    assert rows, section.name
    assert set(section.columns) <= set(rows[0]), section.name
    assert len(section.table(rows).body) >= 1
    csv = tables.to_csv(rows, section.columns)
    assert csv.count("\n") == len(rows) + 1


def test_sections_skip_runs_of_other_experiments(tmp_path):
  run = toy_results.write_reprojection(tmp_path)
  names = [s.name for s in sections.SECTIONS if s.rows(run)]
  assert names == ["reprojection", "reprojection_programs"]


def test_an_unfinished_run_shows_what_it_has(tmp_path):
  run = toy_results.write(tmp_path, drafts=DRAFTS)
  for path in [*run.rglob("lenient-*"), *run.rglob("quality-*")]:
    path.unlink()
  for row in tables.walltime_rows(run):
    assert row["target_quality"] == 30
    assert row["speculative_quality"] is row["difference_low"] is None
  rows = lenience_tables.rows(run)
  assert {row["measured_speed"] for row in rows if row["lenience"] < 1} == {
      None
  }
  assert all(row["predicted_speed"] for row in rows)
  for section in sections.SECTIONS:
    if found := section.rows(run):
      section.table(found).markdown()


def test_measured_means_have_their_interval(run):
  store = toy_results.CellStore(run / "cells")
  mean = measures.distance(store, "small", 0, 0.1)
  assert mean.tokens == 60 * 30
  assert mean.estimate.low < mean.estimate.value < mean.estimate.high

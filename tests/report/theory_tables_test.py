"""What the paper prints from theory comes out of the formulas, to the digit."""

import pytest

from spec_t5x.report import reference, theory_tables


def test_table1_to_the_printed_digit():
  rows = theory_tables.table1()
  assert len(rows) == len(reference.table("leviathan_table1")) == 6
  for row in rows:
    assert f"{row['operations']:.2f}" == f"{row['paper_operations']:.2f}"
    assert f"{row['speed']:.2f}" == f"{row['paper_speed']:.2f}"


def test_figure2_runs_from_one_curve_to_the_other():
  tokens = {
      (row["gamma"], row["alpha"]): row["tokens"]
      for row in theory_tables.figure2()
  }
  assert len(tokens) == 5 * 41
  # Written out for two points: 1 + a + a^2 + a^3, and 1 / (1 - a).
  assert tokens[3, 0.8] == pytest.approx(1 + 0.8 + 0.64 + 0.512)
  assert tokens[float("inf"), 0.9] == pytest.approx(10)


def test_figure3_equals_the_reference_everywhere():
  rows = [row for row in theory_tables.figure3() if row["paper_gamma"]]
  assert len(rows) == 4 * 9
  assert [row["gamma"] for row in rows] == [row["paper_gamma"] for row in rows]


def test_figure4_meets_table1():
  rows = {(row["alpha"], row["gamma"]): row for row in theory_tables.figure4()}
  found = 0
  for printed in theory_tables.table1():
    row = rows.get((printed["alpha"], printed["gamma"]))
    if row:
      found += 1
      assert row["speed"] == printed["speed"]
      assert row["operations"] == printed["operations"]
  assert found == 3


def test_table4_agrees_within_the_rounding_of_alpha_and_c():
  rows = theory_tables.table4()
  assert len(rows) == 12
  assert all(row["agrees"] for row in rows)
  # From the rounded alpha and c themselves all but three are equal.
  equal = [
      abs(row["expected_speed"] - row["paper_expected_speed"]) <= 0.0501
      for row in rows
  ]
  assert sum(equal) == 9


def test_table4_would_notice_another_formula(monkeypatch):
  """A control: theorem 3.8 with the draft's cost left out."""
  true = theory_tables.theory.walltime_improvement
  monkeypatch.setattr(
      theory_tables.theory,
      "walltime_improvement",
      lambda alpha, gamma, cost: true(alpha, gamma, 0.0),
  )
  assert sum(row["agrees"] for row in theory_tables.table4()) < 3


def test_rejection_sampling_never_accepts_more():
  rows = theory_tables.rejection()
  for row in rows:
    assert row["rejection_acceptance"] <= row["alpha"]
  equal = [row for row in rows if row["draft_exponent"] == 1]
  assert equal[0]["rejection_acceptance"] == equal[0]["alpha"] == 1
  assert min(row["rejection_acceptance"] for row in rows) < 0.01


def test_report_shows_the_printed_beside_ours():
  text = theory_tables.report()
  assert "| 0.9 | 10 | 1.60X | 1.60X | 6.86X | 6.86X |" in text
  assert "| EnDe | T5-small | 0 | 7 | 0.75 | 0.02 | 3.16X |" in text
  assert "24 / 24" in text

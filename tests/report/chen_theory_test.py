"""The model of time of Chen et al. 2023 against what they print."""

import pytest

from spec_t5x.report import chen_theory, reference


@pytest.fixture(scope="module")
def table1():
  return {
      (row["benchmark"], row["sampling"]): row for row in chen_theory.table1()
  }


@pytest.fixture(scope="module")
def figure1():
  return {
      (row["benchmark"], row["gamma"]): row for row in chen_theory.figure1()
  }


def test_every_printed_row_is_there(table1):
  assert set(table1) == {
      (row["benchmark"], row["sampling"])
      for row in reference.table("chen_table1")
  }
  assert [row["paper_speed"] for row in table1.values()] == [1.92, 2.01, 2.46]


def test_printed_speeds_come_out_of_acceptance_and_latencies(table1):
  """To 5% with the figure's loop time, to 8% with the latencies alone."""
  for row in table1.values():
    assert abs(row["error_figure"]) < 0.05
    assert 0 <= row["error_latencies"] < 0.08


def test_alpha_is_that_of_the_largest_k(figure1):
  # Equation 1 written out: 1 + a + ... + a^7 over 8 is the rate.
  for benchmark, rate in (("XSum", 0.45), ("HumanEval", 0.68)):
    alpha = chen_theory.alpha(benchmark)
    assert sum(alpha**i for i in range(8)) / 8 == pytest.approx(rate)
    row = figure1[benchmark, 7]
    assert row["predicted_acceptance"] == pytest.approx(rate)
    assert row["paper_acceptance"] == rate


def test_loops_take_what_the_paper_says(figure1):
  for (_, gamma), row in figure1.items():
    assert row["predicted_loop_latencies"] == pytest.approx(14.1 + 1.8 * gamma)
  assert figure1["XSum", 7]["predicted_loop_figure"] == pytest.approx(28.6)
  assert figure1["XSum", 0]["predicted_loop_figure"] == pytest.approx(14.1)


def test_the_other_points_of_the_figure_come_out(figure1):
  """Times that alpha was not fitted to, to 3% with the figure's loop time."""
  points = [row for row in figure1.values() if row["paper_milliseconds"]]
  assert len(points) == len(reference.table("chen_figure1")) == 9
  for row in points:
    predicted = row["predicted_milliseconds_figure"]
    assert predicted == pytest.approx(row["paper_milliseconds"], rel=0.03)


def test_another_acceptance_would_be_noticed(monkeypatch):
  """A control: with the benchmarks swapped the speeds do not come out."""
  true = chen_theory.alpha
  swapped = {"XSum": "HumanEval", "HumanEval": "XSum"}
  monkeypatch.setattr(chen_theory, "alpha", lambda name: true(swapped[name]))
  assert all(abs(row["error_figure"]) > 0.15 for row in chen_theory.table1())


def test_report_says_what_does_not_come_out():
  text = chen_theory.report()
  assert text.count("A model of time, not measured.") == 2
  assert (
      "| XSum | greedy | 4 | 0.750 | 3.05 | 2.02x | +0% | 1.92x | -4%" in text
  )
  assert "fastest at K = 4 for XSum and 7 for HumanEval" in text
  assert "fastest at 3, where the model is 1% above its least time" in text

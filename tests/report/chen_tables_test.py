"""Tables and figures of Chen et al. 2023, of a run whose times are known."""

import pytest
import toy_results

from spec_t5x.report import (
    chen_figures,
    chen_tables,
    paper_notes,
    paper_tables,
    theory_figures,
)

STEP = 1e3 * toy_results.STEP


@pytest.fixture(scope="module")
def run(tmp_path_factory):
  return toy_results.write(
      tmp_path_factory.mktemp("results"),
      task="humaneval",
      run_programs=True,
      drafts={"small": "shipped:s", "base": "shipped:b"},
      leniences=(),
      gammas=(1, 3, 7),
      top_p=0.95,
  )


def test_every_k_from_plain_decoding_on_is_there(run):
  found = [
      (row["draft"], row["temperature"], row["gamma"])
      for row in chen_tables.rows(run)
  ]
  assert found == [
      (draft, temperature, gamma)
      for draft in ("small", "base")
      for temperature in (0, 1)
      for gamma in (0, 1, 3, 7)
  ]


def test_a_loop_takes_its_drafts_and_its_verification(run):
  for row in chen_tables.rows(run):
    expected = STEP
    if row["gamma"]:
      cost = toy_results.COSTS[row["draft"]] * (row["gamma"] + 0.5)
      expected *= toy_results.verify_ratio(row["gamma"]) + cost
    assert row["loop_milliseconds"] == pytest.approx(expected)
    assert row["token_milliseconds"] == pytest.approx(
        row["loop_milliseconds"] / row["tokens_per_loop"]
    )
    assert row["token_low"] <= row["token_milliseconds"] <= row["token_high"]


def test_acceptance_counts_the_targets_own_token(run):
  """Equation 1 over K + 1, where texts of 30 tokens cut few loops short."""
  for row in chen_tables.rows(run):
    if row["gamma"] > 3:
      continue
    alpha = toy_results.rate_of(row["draft"], row["temperature"])
    tokens = sum(alpha**i for i in range(row["gamma"] + 1))
    expected = tokens / (row["gamma"] + 1)
    assert row["acceptance"] == pytest.approx(expected, rel=0.06)
    if row["gamma"] == 0:
      assert row["acceptance"] == row["speed"] == 1


def test_table_1_has_the_closest_k_and_then_the_printed_lines(run):
  rows = chen_tables.table1_rows(run)
  assert {row["gamma"] for row in rows} == {3}
  lines = chen_tables.table1_table(rows).markdown().splitlines()
  assert lines[2].startswith(
      "| humaneval | small | greedy | 3 | BLEU | 30.0 / 30.0 |"
      " 0.0 [0.0, 0.0] | 10.00 | "
  )
  assert "| nucleus 0.95, T = 1 |" in lines[3]
  assert len(lines) == 2 + 4 + 3
  assert lines[-1] == (
      "| HumanEval | 4B for 70B | nucleus 0.95, T = 0.8 | 4 | pass rate % |  |"
      "  |  |  |  | 45.1 / 47.0 | 14.1 / 5.73 | 2.46x |"
  )


def test_the_papers_table_gathers_all_runs(run, tmp_path):
  both = [run, toy_results.write(tmp_path, drafts={"small": "s"})]
  body = paper_tables.chen_table1(both).body
  assert [line[0] for line in body].count("ende") == 2
  note = paper_notes.notes(both)["chen"]
  assert "the pairs at hand on humaneval, ende, with the gamma" in note
  assert "No run of ours" in paper_notes.notes([])["chen"]
  assert len(paper_tables.chen_table1([]).body) == 3


def test_figures_are_drawn_alike_every_time(run, tmp_path):
  rows = chen_tables.rows(run)
  draw = lambda: chen_figures.measured(rows, tmp_path / "figure")
  first = [path.read_bytes() for path in draw()]
  assert first == [path.read_bytes() for path in draw()]
  svg = (tmp_path / "figure.svg").read_text("utf-8")
  for words in ("ms of 128 tokens", "ms of a loop", "small, greedy"):
    assert words in svg
  # What is committed of theory is compared byte by byte elsewhere.
  assert theory_figures.FIGURES["chen_figure1"] is chen_figures.printed

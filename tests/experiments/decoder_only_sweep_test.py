"""A sweep of decoder-only models: prompts are given, and count nowhere."""

import math

import pytest
import toy_decoder

from spec_t5x.experiments.sweep import SweepRun
from spec_t5x.experiments.sweep_settings import Sweep
from spec_t5x.report import chen_tables, measures, tables

PROMPT, STEPS, GAMMA = 4, 6, 2
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
  root = tmp_path_factory.mktemp("models")
  toy_decoder.save_model(root / "target", config=toy_decoder.DECODER_ONLY)
  return Sweep(
      name="toy",
      task="english",
      prompt_tokens=PROMPT,
      target=str(root / "target"),
      drafts={"same": str(root / "target")},
      temperatures=(1.0,),
      top_p=0.9,
      gammas=(GAMMA,),
      alpha_tokens=50,
      num_texts=2,
      passes=1,
      step_repeats=1,
      max_decode_steps=STEPS,
  )


@pytest.fixture(scope="module")
def finished(settings, quick_compilation, tmp_path_factory):
  directory = tmp_path_factory.mktemp("results") / "toy" / "run"
  run = SweepRun(settings, directory)
  run.run()
  return run, directory


def test_generated_tokens_alone_are_kept_and_counted(finished):
  run, _ = finished
  about, rows = run.store.read("outputs-t1")
  assert about["tokens"] == sum(len(row["tokens"]) for row in rows) >= 50
  assert about["quality"] is None
  again, _ = run.store.read("quality-same-t1")
  assert again["texts"] == about["texts"] == len(rows)
  assert again["quality"] is None
  assert "difference" not in again
  for row in rows:
    assert 0 < len(row["tokens"]) <= STEPS
    prompt = run.texts.source(row["example"])
    whole = run.target.vocabulary.decode(
        [*run.texts.ids[row["example"]], *row["tokens"]]
    )
    assert prompt + row["prediction"] == whole
  _, overlaps = run.store.read("alpha-same-t1")
  assert [len(row["overlap"]) for row in overlaps] == [
      len(row["tokens"]) for row in rows
  ]


def test_a_draft_that_is_the_target_is_always_accepted(finished):
  """In the nucleus, too: both laws are cut alike."""
  run, _ = finished
  alpha = measures.alpha(run.store, "same", 1)
  assert alpha.estimate.value == pytest.approx(1, abs=1e-5)
  cell = measures.walltime(run.store, f"walltime-same-t1-g{GAMMA}")
  assert cell.counts.position_accepted == cell.counts.position_tested


def test_both_ways_are_timed_over_equal_numbers_of_tokens(finished):
  run, _ = finished
  _, rows = run.store.read(f"walltime-same-t1-g{GAMMA}")
  for row in rows:
    both = row["plain"], row["speculative"]
    assert row["tokens"] == min(each["emitted"] for each in both) <= STEPS
    assert both[0]["timed_iterations"] == row["tokens"]
    # All drafted tokens are accepted.
    assert both[1]["timed_iterations"] == math.ceil(row["tokens"] / (GAMMA + 1))


def test_traces_begin_behind_the_prompt(finished):
  run, _ = finished
  about, rows = run.store.read("trace-same-t1")
  assert about["source"] == run.texts.source(about["example"])
  tokens = [
      token
      for row in rows
      for segment in row["segments"]
      if segment["kind"] in ("accepted", "target")
      for token in segment["tokens"]
  ]
  assert len(tokens) <= STEPS


def test_tables_do_without_a_score(finished):
  _, directory = finished
  [row] = tables.walltime_rows(directory)
  assert row["target_quality"] is None
  assert "| same | 1 | 2 | 1.00 [1.00, 1.00] |" in (
      tables.walltime_table([row]).markdown()
  )
  plain, drafted = chen_tables.rows(directory)
  assert (plain["gamma"], drafted["gamma"]) == (0, GAMMA)
  assert chen_tables.sampling(drafted) == "nucleus 0.9, T = 1"
  text = chen_tables.table1_table([drafted]).markdown()
  assert text.splitlines()[2].startswith(
      "| english | same | nucleus 0.9, T = 1"
  )

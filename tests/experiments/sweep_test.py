"""A whole sweep with toy models: what it measures, and that it resumes."""

import dataclasses
import io
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest
import toy_decoder
import toy_results
from rich.console import Console

from spec_t5x.drafts import NgramTable
from spec_t5x.experiments import cells, sweep
from spec_t5x.experiments.cells import CellStore
from spec_t5x.experiments.sweep import Sweep, SweepRun
from spec_t5x.experiments.sweep_job import SweepJob
from spec_t5x.report import build, measures, traces

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
  root = tmp_path_factory.mktemp("models")
  toy_decoder.save_model(root / "target")
  toy_decoder.save_model(root / "draft", noise=0.02)
  rng = np.random.default_rng(0)
  texts = rng.integers(2, 8000, (20, 50))
  NgramTable.build(texts, 2, 8000).save(root / "bigram")
  return root


@pytest.fixture(scope="module")
def settings(models):
  return Sweep(
      name="toy",
      task="ende",
      source_prefix="gnomehelp:",
      target=str(models / "target"),
      drafts={
          "small": str(models / "draft"),
          "same": str(models / "target"),
      },
      leniences=(0.1,),
      gammas=(2,),
      alpha_tokens=50,
      num_texts=2,
      passes=2,
      step_repeats=2,
      max_decode_steps=6,
  )


@pytest.fixture(scope="module")
def finished(settings, quick_compilation, tmp_path_factory):
  directory = tmp_path_factory.mktemp("results") / "toy" / "run"
  run = SweepRun(settings, directory)
  run.run()
  return run, directory


def test_every_cell_is_measured(finished):
  run, _ = finished
  names = [cell.name for cell in run.cells()]
  assert run.store.names() == sorted(names)
  # Outputs, alpha, quality, cost, trace, walltime, lenient: 2 temperatures, 2
  # drafts, 2 leniences, 1 gamma.
  assert len(names) == 2 + 8 + 8 + 2 + 4 + 4 + 4


def test_the_tables_are_the_last_thing_shown(finished, settings):
  _, directory = finished
  console = Console(file=io.StringIO(), width=100)
  results = directory.parents[1]
  SweepJob(settings, directory.name, str(results))._report(console)
  assert (results / "index.html").is_file()
  first, *_, last = console.file.getvalue().splitlines()
  assert "tables and figures written" in first
  assert last.startswith("Fastest at temperature 1: ")


def test_programs_are_freed_after_every_cell(
    settings, quick_compilation, tmp_path, monkeypatch
):
  run = SweepRun(settings, tmp_path / "toy" / "freed")
  outputs = list(itertools.islice(run.cells(), 2))
  monkeypatch.setattr(run, "cells", lambda: iter(outputs))
  freed_after = []
  clear = jax.clear_caches
  monkeypatch.setattr(
      jax,
      "clear_caches",
      lambda: (freed_after.append(run.store.names()), clear()),
  )
  run.run()
  assert list(map(len, freed_after)) == [1, 2]


def test_a_table_is_measured_like_a_model(settings, models, tmp_path):
  changed = dataclasses.replace(
      settings,
      drafts={"bigram": f"ngram:{models / 'bigram'}"},
      temperatures=(1.0,),
      leniences=(),
  )
  run = SweepRun(changed, tmp_path / "toy" / "table")
  run.run()
  assert not run.missing()
  assert 0 < measures.alpha(run.store, "bigram", 1).estimate.value < 0.5
  assert measures.step_costs(run.store, "bigram").cost_coefficient > 0
  cell = measures.walltime(run.store, cells.walltime_name("bigram", 1, 2))
  assert cell.counts.iterations > 0


def test_a_draft_that_is_the_target_has_alpha_one(finished):
  run, _ = finished
  for temperature in (0, 1):
    alpha = measures.alpha(run.store, "same", temperature)
    assert alpha.estimate.value == pytest.approx(1.0, abs=1e-6)
    assert alpha.tokens >= 50
  assert measures.alpha(run.store, "small", 1).estimate.value < 1


def test_lenience_accepts_more_and_never_less(finished):
  run, _ = finished
  for draft, temperature in itertools.product(run.drafts, (0, 1)):
    alphas = [
        measures.alpha(run.store, draft, temperature, lenience).estimate.value
        for lenience in (1.0, 0.1)
    ]
    assert alphas == sorted(alphas)
    if draft == "small" and temperature:
      assert alphas[0] < alphas[-1]


def test_greedy_texts_agree_and_equal_numbers_of_tokens_are_timed(finished):
  run, _ = finished
  for name in run.store.names("walltime-"):
    about, rows = run.store.read(name)
    for row in rows:
      both = row["plain"], row["speculative"]
      assert row["tokens"] == min(each["emitted"] for each in both)
      for each in both:
        assert len(each["decode_seconds"]) == 2
        assert min(each["decode_seconds"] + each["encode_seconds"]) > 0
      if about["temperature"] == 0:
        assert both[0]["prediction"] == both[1]["prediction"]


def test_quality_is_of_the_very_texts_that_the_target_generated(finished):
  run, _ = finished
  for draft, temperature in itertools.product(run.drafts, (0, 1)):
    plain, outputs = run.store.read(cells.outputs_name(temperature))
    about, rows = run.store.read(cells.quality_name(draft, temperature))
    of = lambda rows: [(row["example"], row["reference"]) for row in rows]
    assert of(rows) == of(outputs)
    both = zip(rows, outputs, strict=True)
    same = [ours["tokens"] == theirs["tokens"] for ours, theirs in both]
    assert (about["identical"], about["texts"]) == (sum(same), len(rows))
    assert about["gamma"] == run.sweep.middle_gamma
    assert about["tokens"] == sum(len(row["tokens"]) for row in rows)
    difference = about["quality"] - plain["quality"]
    assert about["difference"] == pytest.approx(difference)
    if temperature == 0:
      assert all(same)
      assert about["difference_low"] == about["difference_high"] == 0


def test_sampled_texts_are_not_the_plain_ones(finished):
  """A control: at temperature 1 the draws are others."""
  run, _ = finished
  for about in (("small", 1), ("same", 1), ("small", 1, 0.1)):
    cell, _ = run.store.read(cells.quality_name(*about))
    assert cell["identical"] < cell["texts"]


def test_costs_are_ratios_of_medians(finished):
  run, _ = finished
  costs = measures.step_costs(run.store, "small")
  assert set(costs.target) == {1, 3}
  assert set(costs.draft) == {1, 2}
  assert costs.cost_coefficient > 0
  assert costs.verify_ratio(2) == costs.target[3] / costs.target[1]


def test_nothing_is_measured_twice(finished, settings, monkeypatch):
  _, directory = finished
  before = {p: p.read_bytes() for p in (directory / "cells").iterdir()}
  monkeypatch.setattr(sweep, "TimedExample", None)
  monkeypatch.setattr(sweep, "quality", None)
  SweepRun(settings, directory).run()
  after = {p: p.read_bytes() for p in (directory / "cells").iterdir()}
  assert before == after


def test_other_settings_are_refused_for_the_same_run(finished, settings):
  _, directory = finished
  changed = dataclasses.replace(settings, passes=9)
  message = r"other settings or weights \(\['passes'\]\)"
  with pytest.raises(ValueError, match=message):
    SweepRun(changed, directory)


def test_provenance_names_weights_code_and_data(finished):
  _, directory = finished
  record = json.loads((directory / "provenance.json").read_text())
  hashes = record["weights_sha256"]
  assert set(hashes) == {"target", "small", "same"}
  assert hashes["target"] == hashes["same"] != hashes["small"]
  assert record["data"]["source_prefix"] == "gnomehelp:"
  for key in ("commit", "command", "seed", "versions", "device", "xla_flags"):
    assert key in record


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("gammas", (), "`gammas` must not be empty"),
        ("gammas", (0, 3), "`gammas` must be at least 1"),
        ("drafts", {}, "`drafts` must not be empty"),
        ("drafts", {"copy": "lookup:2"}, "`drafts` must have laws"),
        ("leniences", (0.5, 1.0), r"`leniences` must be in \(0, 1\)"),
        ("num_texts", 0, "`num_texts` must be at least 1. Got 0"),
    ],
)
def test_bad_settings_are_named(settings, field, value, message):
  with pytest.raises(ValueError, match=message):
    dataclasses.replace(settings, **{field: value})


def test_lenient_decoding_accepts_more_and_is_not_mixed_with_exact(finished):
  run, _ = finished
  exact = measures.walltime(run.store, cells.walltime_name("small", 1, 2))
  name = cells.walltime_name("small", 1, 2, 0.1)
  assert name not in run.store.names("walltime-")
  lenient = measures.walltime(run.store, name)
  assert (exact.about["lenience"], lenient.about["lenience"]) == (1, 0.1)
  assert lenient.counts.alpha_exact > exact.counts.alpha_exact


def test_one_text_of_each_draft_is_traced(finished):
  run, directory = finished
  found = {traced.name: traced for traced in traces.read(directory)}
  assert len(found) == 4
  about, timed = run.store.read(cells.walltime_name("small", 0, 2))
  traced = found[cells.trace_name("small", 0)]
  assert traced.about["gamma"] == about["gamma"]
  [row] = [r for r in timed if r["example"] == traced.about["example"]]
  counts = row["speculative"]["counts"]
  assert len(traced.iterations) == counts["iterations"]
  assert traced.count("accepted") == sum(counts["accepted"])
  tokens = [
      token
      for segments in traced.iterations
      for segment in segments
      if segment.kind in ("accepted", "target")
      for token in segment.tokens
  ]
  text = run.target.vocabulary.decode(tokens)
  assert text == row["speculative"]["prediction"]


def keys(value):
  """The form of a JSON value: keys of dicts, and what lists hold first."""
  if isinstance(value, dict):
    return {key: keys(value[key]) for key in value}
  if isinstance(value, list):
    return [keys(value[0])] if value and isinstance(value[0], dict) else []
  return None


def test_drawn_results_have_the_form_of_these(finished, tmp_path):
  """Tests of tables rely on `toy_results`."""
  run, directory = finished
  drawn = toy_results.write(tmp_path, gammas=(2,))
  store = CellStore(drawn / "cells")
  for name in (
      cells.outputs_name(1),
      cells.alpha_name("small", 1),
      cells.quality_name("small", 1),
      cells.cost_name("small"),
      cells.trace_name("small", 1),
      cells.walltime_name("small", 1, 2),
  ):
    about, rows = run.store.read(name)
    drawn_about, drawn_rows = store.read(name)
    assert keys(about) == keys(drawn_about), name
    assert keys(rows[0]) == keys(drawn_rows[0]), name
  record, drawn_record = (
      json.loads((path / "provenance.json").read_text())
      for path in (directory, drawn)
  )
  assert record.keys() == drawn_record.keys()


def test_tables_and_figures_can_be_made(finished):
  _, directory = finished
  results = directory.parents[1]
  written = build.build(results)
  assert all(path.stat().st_size for path in written)
  lines = (results / "tables" / "walltime.csv").read_text().splitlines()
  assert lines[0].startswith("task,target,draft,temperature,gamma,alpha,")
  assert len(lines) == 1 + 4
  lines = (results / "tables" / "lenience.csv").read_text().splitlines()
  assert lines[0].startswith("task,draft,temperature,lenience,alpha,")
  assert len(lines) == 1 + 8


@pytest.mark.slow
def test_a_killed_sweep_resumes(settings, models, tmp_path):
  bindings = {
      "NAME": '"toy"',
      "TARGET": f'"{settings.target}"',
      "DRAFTS": repr(settings.drafts),
      "RESULTS": f'"{tmp_path}"',
      "SOURCE_PREFIX": '"gnomehelp:"',
      "GAMMAS": "(1, 2)",
      "ALPHA_TOKENS": "50",
      "NUM_TEXTS": "2",
      "PASSES": "2",
      "STEP_REPEATS": "2",
      "MAX_DECODE_STEPS": "6",
  }
  command = [
      sys.executable,
      "scripts/sweep.py",
      "--gin_file=configs/experiments/ende.gin",
      *(f"--gin.{name}={value}" for name, value in bindings.items()),
  ]
  environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
  process = subprocess.Popen(command, cwd=ROOT, env=environment)
  store = CellStore(tmp_path / "toy" / "local" / "cells")
  while len(store.names()) < 3:
    assert process.poll() is None
    time.sleep(0.05)
  process.send_signal(signal.SIGKILL)
  process.wait()
  kept = {name: store.read(name) for name in store.names()}
  assert not store.names("walltime-same-t1-g2")
  subprocess.run(command, cwd=ROOT, env=environment, check=True)
  assert {name: store.read(name) for name in kept} == kept
  assert len(store.names()) == 2 + 4 + 4 + 2 + 4 + 8
  assert (tmp_path / "tables" / "walltime.csv").exists()

"""The scripts as jobs of two processes: what one device writes, once."""

import json
import re
import subprocess
import sys

import jax
import numpy as np
import pytest
import toy_decoder
import two_processes

from spec_t5x import model
from spec_t5x.experiments.cells import CellStore

pytestmark = pytest.mark.slow
ROOT = two_processes.TESTS.parent


@pytest.fixture(scope="module")
def models(tmp_path_factory):
  root = tmp_path_factory.mktemp("models")
  toy_decoder.save_model(root / "target")
  toy_decoder.save_model(root / "draft", noise=0.02)
  return root


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
  """Environment in which nothing is compiled twice."""
  return {
      "JAX_COMPILATION_CACHE_DIR": str(tmp_path_factory.mktemp("compiled")),
      "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
  }


def flags(**macros):
  return [f"--gin.{name}={value!r}" for name, value in macros.items()]


def run(script, config, outputs, quick, **macros):
  """Runs a script on one device, then as two processes of four devices.

  Args:
    script: its name.
    config: its gin file.
    outputs: macro and values of where the single process, the first and the
      second one write.
    quick: environment.
    **macros: all others.

  Returns:
    What each of the two processes printed.
  """
  command = [f"scripts/{script}.py", f"--gin_file=configs/{config}.gin"]
  command += flags(**macros)
  name, values = outputs
  one, *both = ([*flags(**{name: str(value)})] for value in values)
  two_processes.run([*command, *one], **quick)
  # Heads of the models are not divisible.
  command += flags(MESH=(8, 1))
  return two_processes.run_job(command, both, **quick)


def test_decode(models, quick, tmp_path):
  texts = "".join(f"{n} {'file ' * (n % 4)}open\n" for n in range(9))
  (tmp_path / "in.txt").write_text(texts)
  outputs = [tmp_path / name for name in ("one", "first", "second")]
  printed = run(
      "decode",
      "decoding/speculative",
      ("OUTPUTS", outputs),
      quick,
      TARGET=str(models / "target"),
      DRAFT=str(models / "draft"),
      INPUTS=str(tmp_path / "in.txt"),
      GAMMA=3,
      TEMPERATURE=1.0,
      MAX_DECODE_STEPS=6,
      BATCH_SIZE=4,
      TRACE=2,
      DRAFT_SHARDING="sharded",
  )
  one, first = (
      [json.loads(line) for line in path.read_text().splitlines()]
      for path in outputs[:2]
  )
  assert len(one) == 9
  for row, expected in zip(first, one, strict=True):
    for name in ("tokens", "accept_counts", "prediction"):
      assert row[name] == expected[name]
    assert row["log_prob"] == pytest.approx(expected["log_prob"], abs=1e-3)
  assert re.search(r"lines +9", printed[0])
  assert "Line 2: 1 file open" in printed[0]
  # Gloo prints a word of its own.
  assert "lines" not in printed[1]
  assert not list(tmp_path.glob("second*"))


def test_sweep(models, quick, tmp_path):
  results = [tmp_path / name for name in ("one", "first", "second")]
  for path in results:
    path.mkdir()
  printed = run(
      "sweep",
      "experiments/sweep_common",
      ("RESULTS", results),
      quick,
      NAME="toy",
      TASK="ende",
      SOURCE_PREFIX="gnomehelp:",
      TARGET=str(models / "target"),
      DRAFTS={"small": str(models / "draft")},
      GAMMAS=(2,),
      ALPHA_TOKENS=50,
      NUM_TEXTS=2,
      PASSES=1,
      STEP_REPEATS=1,
      MAX_DECODE_STEPS=6,
  )
  assert "Fastest at temperature 1: small, gamma 2" in printed[0]
  assert "cells" not in printed[1]
  assert not list(results[2].iterdir())
  one, first = (
      CellStore(path / "toy" / "local" / "cells") for path in results[:2]
  )
  assert one.names()
  assert first.names() == one.names()
  for name in one.names():
    assert_same_cell(first.read(name), one.read(name))


def test_train(quick, tmp_path):
  # Processes of a job share the directory of the run.
  directories = [tmp_path / name for name in ("one", "both", "both")]
  printed = run(
      "train",
      "experiments/train_common",
      ("DIRECTORY", directories),
      quick,
      EMB_DIM=16,
      NUM_HEADS=2,
      HEAD_DIM=8,
      MLP_DIM=16,
      NUM_ENCODER_LAYERS=1,
      NUM_DECODER_LAYERS=1,
      TOKENS_PER_BATCH=4096,
      WARMUP_STEPS=1,
      NUM_STEPS=2,
      DECAY_START=2,
      EVAL_EVERY=2,
      SAVE_EVERY=2,
      METRIC=None,
  )
  assert "step 2, loss" in printed[0]
  assert "step" not in printed[1]
  [one], [both] = (
      [json.loads(line) for line in (path / "log.jsonl").open()]
      for path in directories[:2]
  )
  assert both["step"] == one["step"] == 2
  for name in ("loss", "held_out_loss"):
    assert both[name] == pytest.approx(one[name], abs=1e-3)
  saved = [model.load(path / "model").params for path in directories[:2]]
  for first, second in zip(*map(jax.tree.leaves, saved), strict=True):
    # A bfloat16 apart where sums taken in parts round otherwise.
    np.testing.assert_allclose(first, second, rtol=2**-7, atol=1e-3)


def assert_same_cell(found, expected):
  """Compares two cells, but for seconds."""
  for row, other in zip(found[1], expected[1], strict=True):
    assert set(row) == set(other)
    for key in ("tokens", "example", "segments", "block", "model"):
      assert row.get(key) == other.get(key)
    assert row.get("overlap") == pytest.approx(other.get("overlap"), abs=1e-4)
    for key in ("plain", "speculative"):
      counts = [each.get(key, {}).get("counts") for each in (row, other)]
      assert_same_counts(*counts)


def assert_same_counts(found, expected):
  if expected is not None:
    # Sums of probabilities are taken in parts.
    overlap = expected.pop("overlap")
    assert found.pop("overlap") == pytest.approx(overlap, abs=1e-4)
  assert found == expected


@pytest.mark.parametrize(
    ("flag", "variables", "message"),
    [
        (
            "--process_index=0",
            {"JAX_PROCESS_COUNT": "2"},
            "`--coordinator_address` (or $JAX_COORDINATOR_ADDRESS) must be"
            " given with `--process_count` and `--process_index`. Got None.",
        ),
        ("--multiprocess", {}, "`--multiprocess` must be used where JAX finds"),
    ],
)
def test_a_job_that_is_none_is_refused(flag, variables, message):
  done = subprocess.run(
      [
          sys.executable,
          "scripts/decode.py",
          "--gin_file=configs/decoding/plain.gin",
          *flags(TARGET="t", INPUTS="i", OUTPUTS="o"),
          flag,
      ],
      cwd=ROOT,
      env={"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", **variables},
      capture_output=True,
      text=True,
      check=False,
  )
  assert done.returncode
  # Flags' help is wrapped around it.
  assert message in " ".join(done.stderr.split())

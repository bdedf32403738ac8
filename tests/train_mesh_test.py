"""Tests of training on meshes: the steps of one device, resumed exactly."""

import json
import os
import pathlib
import subprocess
import sys

import pytest


def run_worker(directory, what):
  tests = pathlib.Path(__file__).parent
  flags = (
      "--xla_force_host_platform_device_count=8"
      " --xla_backend_optimization_level=0"
  )
  subprocess.run(
      [sys.executable, tests / "train_mesh_worker.py", directory, what],
      env={
          **os.environ,
          "JAX_PLATFORMS": "cpu",
          "PYTHONPATH": str(tests.parent),
          "XLA_FLAGS": flags,
      },
      check=True,
  )
  return json.loads((directory / "seen.json").read_text())


@pytest.mark.slow
def test_steps_are_those_of_one_device(tmp_path):
  seen = run_worker(tmp_path, "step")
  for optimizer in ("adamw", "adafactor"):
    difference, change = seen[optimizer]
    # Sums are taken in another order: a few units in the last place.
    assert difference < 1e-5
    assert change > 1e-2
  assert seen["resumed"] == {
      "equal": True,
      "files": ["log.jsonl", "state"],
      # Half of the vocabulary, of parameters and moments alike.
      "params": [12, 8],
      "moments": [12, 8],
  }


@pytest.mark.slow
def test_jobs_fine_tune_on_a_mesh(tmp_path):
  assert run_worker(tmp_path, "job") == {
      "config": True,
      "moved": True,
      "columns": [
          "bleu",
          "held_out_loss",
          "looping",
          "loss",
          "seconds",
          "step",
          "target_tokens_per_second",
      ],
  }

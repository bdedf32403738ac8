"""Tests of training on meshes: the steps of one device, resumed exactly."""

import json
import pathlib

import pytest
import two_processes

WORKER = pathlib.Path(__file__).parent / "train_mesh_worker.py"


def run_worker(directory, what, num_processes):
  """Trains in one or two processes; returns what each of them saw."""
  command = [WORKER, directory, what]
  if num_processes == 1:
    flags = two_processes.FLAGS.replace("count=4", "count=8")
    two_processes.run(command, XLA_FLAGS=flags)
  else:
    command.append(str(two_processes.free_port()))
    two_processes.run(*([*command, str(index)] for index in range(2)))
  return [
      json.loads((directory / f"seen_{index}.json").read_text())
      for index in range(num_processes)
  ]


@pytest.mark.slow
@pytest.mark.parametrize("num_processes", [1, 2])
def test_steps_are_those_of_one_device(tmp_path, num_processes):
  for seen in run_worker(tmp_path, "step", num_processes):
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
  seen = []
  for num_processes in (1, 2):
    directory = tmp_path / str(num_processes)
    directory.mkdir()
    seen += run_worker(directory, "job", num_processes)
  for found in seen:
    assert found["config"]
    assert found["moved"]
    assert found["columns"] == [
        "bleu",
        "held_out_loss",
        "looping",
        "loss",
        "seconds",
        "step",
        "target_tokens_per_second",
    ]
    # Activations are bfloat16: sums are taken in another order.
    assert found["losses"] == pytest.approx(seen[0]["losses"], abs=0.02)

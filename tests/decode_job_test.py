"""Tests of the decode job: order, resumption, refusals, and the script."""

import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
import toy_decoder
from rich.console import Console

from spec_t5x import decode_job
from spec_t5x.decode_job import DecodeJob

ROOT = pathlib.Path(__file__).parents[1]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
  """Directories of a target, of a draft and of a model without vocabulary."""
  root = tmp_path_factory.mktemp("models")
  toy_decoder.save_model(root / "target")
  toy_decoder.save_model(root / "draft", noise=0.1)
  toy_decoder.save_model(root / "tokens", has_vocabulary=False)
  return root


@pytest.fixture
def job(models, tmp_path, monkeypatch):
  """A job of 11 texts in 4 batches, with a decoder that copies."""
  monkeypatch.setattr(decode_job, "Decoder", toy_decoder.CopyingDecoder)
  texts = tmp_path / "in.txt"
  texts.write_text("".join("x" * (7 * n % 40) + "\n" for n in range(11)))
  return DecodeJob(
      target=str(models / "target"),
      draft=None,
      inputs=str(texts),
      outputs=str(tmp_path / "out.jsonl"),
      batch_size=3,
  )


def run(job):
  """Runs a job; returns summary and what was shown."""
  console = Console(record=True, file=open(os.devnull, "w"), width=100)
  summary = job.run(console)
  return summary, console.export_text()


def records(job):
  """Parses the outputs."""
  lines = pathlib.Path(job.outputs).read_bytes().split(b"\n")
  assert lines.pop() == b""
  return [json.loads(line) for line in lines]


def stop_after(monkeypatch, batches):
  """Lets a job be interrupted while it decodes one more batch."""
  decode_batch, left = decode_job.decode_batch, iter(range(batches))

  def stopping(*args):
    if next(left, None) is None:
      raise KeyboardInterrupt
    return decode_batch(*args)

  monkeypatch.setattr(decode_job, "decode_batch", stopping)


def test_outputs_are_in_the_order_of_the_inputs(job):
  summary, shown = run(job)
  texts = pathlib.Path(job.inputs).read_text().splitlines()
  assert [record["input"] for record in records(job)] == texts
  for line, record in enumerate(records(job)):
    assert record["tokens"] == [122] * len(texts[line]) + [1, 0]
    # The copying decoder's score is a third of the input's number.
    assert record["log_prob"] == pytest.approx(line / 3, rel=1e-6)
  assert summary.num_inputs == 11
  assert summary.statistics.emitted == sum(map(len, texts)) + 2 * 11
  assert re.search(r"^lines +11 *$", shown, re.MULTILINE)
  assert not pathlib.Path(f"{job.outputs}.partial").exists()


@pytest.mark.parametrize("batches", range(4))
def test_stopped_job_goes_on(job, monkeypatch, batches):
  whole = dataclasses.replace(job, outputs=job.outputs + ".whole")
  expected, _ = run(whole)
  with monkeypatch.context() as patch:
    stop_after(patch, batches)
    with pytest.raises(KeyboardInterrupt):
      run(job)
  assert not pathlib.Path(job.outputs).exists()
  # Exactly the other batches are decoded.
  stop_after(monkeypatch, 4 - batches)
  summary, _ = run(job)
  assert summary.statistics == expected.statistics
  content = pathlib.Path(job.outputs).read_bytes()
  assert content == pathlib.Path(whole.outputs).read_bytes()


def test_finished_job_is_left_alone(job, monkeypatch):
  summary, _ = run(job)
  content = pathlib.Path(job.outputs).read_bytes()
  # As after a kill between the two last steps of a job.
  pathlib.Path(f"{job.outputs}.partial").write_text("{}")
  stop_after(monkeypatch, 0)
  again, shown = run(job)
  assert again == summary
  assert "All inputs were decoded by an earlier run." in shown
  assert pathlib.Path(job.outputs).read_bytes() == content
  assert not pathlib.Path(f"{job.outputs}.partial").exists()


def test_finished_job_of_other_settings_is_refused(job):
  run(job)
  content = pathlib.Path(job.outputs).read_bytes()
  message = r"out.jsonl is of another run: `seed` was 0 and is 1\. Delete"
  with pytest.raises(ValueError, match=message):
    run(dataclasses.replace(job, seed=1))
  assert pathlib.Path(job.outputs).read_bytes() == content


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"max_decode_steps": 9}, "max_decode_steps"),
        ({"target": "tokens"}, "target_sha256"),
        ({"inputs": "other.txt"}, "inputs_sha256"),
    ],
)
def test_stopped_job_of_other_settings_is_refused(
    job, monkeypatch, models, tmp_path, changes, name
):
  (tmp_path / "other.txt").write_text("other\n")
  if "target" in changes:
    changes = {"target": str(models / "tokens")}
  if "inputs" in changes:
    changes = {"inputs": str(tmp_path / "other.txt")}
  stop_after(monkeypatch, 1)
  with pytest.raises(KeyboardInterrupt):
    run(job)
  message = rf"out.jsonl.partial is of another run: `{name}` was .* and is"
  with pytest.raises(ValueError, match=message):
    run(dataclasses.replace(job, **changes))


def test_job_that_failed_at_once_may_change(job, monkeypatch):
  with monkeypatch.context() as patch:
    stop_after(patch, 0)
    with pytest.raises(KeyboardInterrupt):
      run(job)
  summary, _ = run(dataclasses.replace(job, batch_size=2))
  assert summary.num_inputs == 11


def test_moved_files_are_the_same_job(job, monkeypatch, models):
  stop_after(monkeypatch, 4)
  run(job)
  target = f"{models}/../{models.name}/target"
  _, shown = run(dataclasses.replace(job, target=target))
  assert "by an earlier run" in shown


def test_foreign_outputs_are_refused(job):
  pathlib.Path(job.outputs).write_text("precious")
  with pytest.raises(ValueError, match="must not exist yet. Got .*out.jsonl"):
    run(job)
  assert pathlib.Path(job.outputs).read_text() == "precious"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 0}, "`batch_size` must be .* Got 0"),
        ({"trace": 12}, "`trace` must name lines .* 1 to 11. Got 12"),
        ({"trace": (3, 0)}, "`trace` must name lines .* Got 0"),
        ({"trace_file": "a.png"}, "must end in .svg or .html. Got a.png"),
        ({"outputs": "missing/out"}, "in a directory that exists"),
        (
            {"rescale_log_probs": True, "lenience": 0.5, "temperature": 0.0},
            "`rescale_log_probs` must be False if `lenience` is below 1",
        ),
    ],
)
def test_bad_arguments(job, changes, message):
  with pytest.raises(ValueError, match=message):
    run(dataclasses.replace(job, **changes))


def test_texts_for_a_model_without_vocabulary(job, models):
  with pytest.raises(ValueError, match="line 1: .* no vocabulary"):
    run(dataclasses.replace(job, target=str(models / "tokens")))


def test_speed_leaves_out_the_first_batch_of_a_shape(job):
  summary, shown = run(job)
  assert summary.tokens_per_second > 0
  assert summary.warm_emitted < summary.statistics.emitted
  assert "first batch of each shape left out" in shown
  one_batch = dataclasses.replace(
      job, batch_size=16, outputs=job.outputs + ".one"
  )
  summary, shown = run(one_batch)
  assert summary.tokens_per_second is None
  assert "compilation included (no batch came without)" in shown


# Below, the script itself decodes with real, tiny models.

KILLED_WHILE_WRITING = """
import os, runpy, signal, sys
from spec_t5x import decode_files

append = decode_files.PartialFile.append

def append_or_die(self, line):
  if line.get("batch") == 5:
    self._file.write(decode_files.json_line(line)[:-20])
    self._file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
  append(self, line)

decode_files.PartialFile.append = append_or_die
sys.argv = ["scripts/decode.py", *sys.argv[1:]]
runpy.run_path("scripts/decode.py", run_name="__main__")
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
  """What one process compiles the next ones need not."""
  return tmp_path_factory.mktemp("cache")


def decode(command, cache, **macros):
  """Runs a command of the script; returns the finished process."""
  bindings = [f"--gin.{name}={value!r}" for name, value in macros.items()]
  config = "--gin_file=configs/decoding/speculative.gin"
  return subprocess.run(
      [sys.executable, *command, config, *bindings],
      cwd=ROOT,
      env=os.environ
      | {
          "JAX_PLATFORMS": "cpu",
          # Compile fast rather than well.
          "XLA_FLAGS": "--xla_backend_optimization_level=0",
          "PYTHONPATH": str(ROOT),
          "JAX_COMPILATION_CACHE_DIR": str(cache),
          "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
      },
      capture_output=True,
      text=True,
      check=False,
  )


def test_killed_script_resumes(models, tmp_path, cache):
  texts = [f"{n} {'file ' * (n % 4)}open" for n in range(23)]
  (tmp_path / "in.txt").write_text("\n".join(texts))
  macros = dict(
      TARGET=str(models / "target"),
      DRAFT=str(models / "draft"),
      INPUTS=str(tmp_path / "in.txt"),
      GAMMA=3,
      TEMPERATURE=1.0,
      MAX_DECODE_STEPS=6,
      BATCH_SIZE=2,
  )
  whole, resumed = tmp_path / "whole.jsonl", tmp_path / "resumed.jsonl"
  partial = tmp_path / "resumed.jsonl.partial"

  killed = ["-c", KILLED_WHILE_WRITING]
  done = decode(killed, cache, OUTPUTS=str(resumed), **macros)
  assert done.returncode == -signal.SIGKILL, done.stderr
  assert not resumed.exists()
  # The settings, five batches and a torn line.
  assert partial.read_bytes().count(b"\n") == 6
  assert not partial.read_bytes().endswith(b"\n")

  done = decode(["scripts/decode.py"], cache, OUTPUTS=str(resumed), **macros)
  assert done.returncode == 0, done.stderr
  assert "block efficiency" in done.stdout
  assert not partial.exists()

  done = decode(["scripts/decode.py"], cache, OUTPUTS=str(whole), **macros)
  assert done.returncode == 0, done.stderr
  assert resumed.read_bytes() == whole.read_bytes()

  lines = [json.loads(line) for line in whole.read_text().splitlines()]
  assert [line["input"] for line in lines] == texts
  assert all(line["emitted"] == len(line["tokens"]) for line in lines)
  accepted = np.sum([line["accept_counts"] for line in lines], axis=0)
  assert accepted[1:].any()
  assert accepted[0]

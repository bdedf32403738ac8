"""Tests of the job that compiles a grid, without the compiler."""

import dataclasses
import json

import jax
import pytest

from spec_t5x.config import T5Config
from spec_t5x.tpu import chips, compiling
from spec_t5x.tpu.job import TpuCompileJob

TARGET = T5Config(256, 64, 4, 16, 128, 2, 2, dtype="bfloat16")
DRAFT = dataclasses.replace(TARGET, emb_dim=32, num_heads=2)
FACTS = {
    "compile_cpu_seconds": 12.5,
    "argument_bytes": 3_000_000_000,
    "temporary_bytes": 400_000_000,
    "output_bytes": 0,
    "code_bytes": 0,
    "iteration": {
        "collectives": {"all-reduce": 7},
        "collective_bytes": 2_000_000,
        "relayouts": 3,
        "relayout_bytes": 1_000_000,
    },
    "outside": {
        "collectives": {},
        "collective_bytes": 0,
        "relayouts": 0,
        "relayout_bytes": 0,
    },
    "carried_bytes": 100,
    "carried_padded_bytes": 150,
}


@pytest.fixture(name="job")
def _job(tmp_path, monkeypatch):
  """A job that asks a stand-in for the compiler."""
  monkeypatch.setattr(chips, "devices", lambda name: jax.devices()[:1])
  monkeypatch.setattr(compiling, "compile_loop", lambda loop, devices: FACTS)
  return TpuCompileJob(
      target=TARGET,
      drafts={"T5-small": DRAFT, "T5-base": DRAFT},
      slices=("v4-1", "v5e-4"),
      gammas=(7, 5),
      tasks={"EnDe": (8, 8)},
      results=str(tmp_path),
  )


def test_usual_settings_come_first(job):
  names = [setting.cell for setting in job.settings()]
  assert names[0] == "compiled-v4-1-T5-small-EnDe-t1-g7"
  assert set(names[1:4]) == {
      "compiled-v5e-4-T5-small-EnDe-t1-g7",
      "compiled-v4-1-T5-base-EnDe-t1-g7",
      "compiled-v4-1-T5-small-EnDe-t1-g5",
  }
  assert len(set(names)) == 2 * 2 * 2


def test_cells_are_made_once_and_tables_from_them(job, tmp_path, monkeypatch):
  job.execute()
  directory = tmp_path / "tpu_compile"
  cells = sorted(path.stem for path in (directory / "cells").iterdir())
  assert len(cells) == 8 + 2
  text = (directory / "tpu.md").read_text("utf-8")
  assert "compiled and predicted" in text
  assert "7 all-reduce" in text
  # 3.4 of 34.36 GB.
  assert " 10% " in text

  def fail(loop, devices):
    raise AssertionError("compiled again")

  monkeypatch.setattr(compiling, "compile_loop", fail)
  before = {p.name: p.read_bytes() for p in directory.glob("*.*")}
  job.execute()
  assert {p.name: p.read_bytes() for p in directory.glob("*.*")} == before


def test_cells_of_other_models_are_kept(job):
  job.execute()
  other = dataclasses.replace(TARGET, mlp_dim=64)
  with pytest.raises(ValueError, match=r"other settings .*\['target'\]"):
    dataclasses.replace(job, target=other).execute()


def test_counts_are_those_of_one_device(job, tmp_path):
  job.execute()
  step = {}
  for slice_name in job.slices:
    path = tmp_path / f"tpu_compile/cells/counts-{slice_name}-EnDe.jsonl"
    rows = map(json.loads, path.read_text("utf-8").splitlines()[1:])
    step[slice_name] = {(r["model"], r["block"]): r["flops"] for r in rows}
  one, four = step.values()
  assert one["target", 8] == 4 * four["target", 8]
  assert one["T5-small", 1] == four["T5-small", 1]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("slices", ("v4-9",), "`slice` must be one of"),
        ("slices", ("v4-1", "v5e-8"), "`num_heads` must be divisible by 8"),
        ("drafts", {}, "`drafts` must not be empty."),
        ("gammas", (0,), "`gamma` must be at least 1. Got 0."),
        ("tasks", {"EnDe": (0, 8)}, "`inputs` must be at least 1. Got 0."),
    ],
)
def test_errors(job, field, value, message):
  with pytest.raises(ValueError, match=message):
    dataclasses.replace(job, **{field: value})

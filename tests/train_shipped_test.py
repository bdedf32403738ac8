"""Tests of the script that trains the shipped models: all, and in order."""

import pathlib
import re
import subprocess

import gin
import pytest

from spec_t5x import gin_flags

ROOT = pathlib.Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "train_shipped.sh"


def macros(path):
  """What a gin file binds these macros to."""
  names = ("DIRECTORY", "INIT_FROM", "TEACHER")
  try:
    gin.clear_config()
    gin_flags.parse([path], [])
    return [gin.query_parameter(f"{name}/macro.value") for name in names]
  finally:
    gin.clear_config()


@pytest.fixture
def runs(monkeypatch):
  """(directory, models needed) of each training, in order."""
  monkeypatch.chdir(ROOT)
  # Runs the script's own loop, with `python` only naming its file.
  _, name, loop = SCRIPT.read_text("utf-8").partition("recipes=")
  program = f'python() {{ echo "${{@: -1}}"; }}\n{name}{loop}'
  done = subprocess.run(
      ["bash", "-euc", program], capture_output=True, text=True, check=True
  )
  paths = re.findall(r"--gin_file=(\S+)", done.stdout)
  assert len(paths) == 10
  return [
      (directory, [name for name in needs if name])
      for directory, *needs in map(macros, paths)
  ]


def missing(runs):
  """Models that a training needs before they are there."""
  there, early = set(), set()
  for directory, needs in runs:
    early |= set(needs) - there
    there.add(f"{directory}/model")
  return early


def test_models_are_trained_after_those_they_begin_from(runs):
  assert not missing(runs)
  # In another order they would not be.
  assert "runs/target/model" in missing(runs[::-1])


def test_all_shipped_models_are_trained(runs):
  shipped = {path.name for path in (ROOT / "spec_t5x/data/models").iterdir()}
  assert {f"runs/{name}" for name in shipped} <= {run for run, _ in runs}

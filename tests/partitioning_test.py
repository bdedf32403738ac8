"""Tests of meshes: each device its part, and the tokens of one device.

The tokens are compared exactly. Sums are taken in another order on a mesh, but
the logits differ by 1e-6 and the closest decision of these texts by more than
that, and the texts are the same in every run.
"""

import json
import os
import pathlib
import subprocess
import sys

import jax
import pytest

from spec_t5x import partitioning
from spec_t5x.config import T5Config

MESHES = ("8x1", "4x2", "2x4", "1x8")
CASES = (("mixed", "4x2", "replicated"),)
SLOW_CASES = (
    *(
        (mode, mesh, "replicated")
        for mode in ("mixed", "greedy")
        for mesh in MESHES
    ),
    ("mixed", "2x4", "sharded"),
    ("greedy", "2x4", "sharded"),
    ("mixed", "2x4", "shortened"),
    ("greedy", "4x2", "shortened"),
    ("mixed", "4x2", "none"),
    ("greedy", "1x8", "none"),
)


def run_worker(directory, cases):
  """Runs `mesh_worker.py`, and every case on one device as well."""
  names = {":".join(case) for case in cases}
  names |= {f"{mode}:1:{_one_device(how)}" for mode, _, how in cases}
  # Compiled programs run once here: time goes into making them.
  flags = (
      "--xla_force_host_platform_device_count=8"
      " --xla_backend_optimization_level=0"
  )
  tests = pathlib.Path(__file__).parent
  subprocess.run(
      [sys.executable, tests / "mesh_worker.py", directory, *sorted(names)],
      env={
          **os.environ,
          "JAX_PLATFORMS": "cpu",
          "PYTHONPATH": str(tests.parent),
          "XLA_FLAGS": flags,
      },
      check=True,
  )
  return json.loads((directory / "seen.json").read_text())


def _one_device(how):
  return how if how in ("none", "shortened") else "replicated"


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
  return run_worker(tmp_path_factory.mktemp("mesh"), CASES)


@pytest.fixture(scope="module")
def seen_in_full(tmp_path_factory):
  return run_worker(tmp_path_factory.mktemp("meshes"), SLOW_CASES)


def assert_as_one_device(decoded, mode, mesh, how):
  assert (
      decoded[f"{mode}:{mesh}:{how}"] == decoded[f"{mode}:1:{_one_device(how)}"]
  )


@pytest.mark.parametrize(("mode", "mesh", "how"), CASES)
def test_decodes_as_one_device(seen, mode, mesh, how):
  assert_as_one_device(seen["decoded"], mode, mesh, how)


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "mesh", "how"), SLOW_CASES)
def test_decodes_as_one_device_on_every_mesh(seen_in_full, mode, mesh, how):
  assert_as_one_device(seen_in_full["decoded"], mode, mesh, how)


def test_the_comparison_can_fail(seen):
  rows = seen["decoded"]["mixed:1:replicated"]["tokens"]
  # Texts differ by input and by draw; two decodes of an input by argmax are
  # one text.
  assert len({tuple(text) for decodes in rows for text in decodes}) == 8


def test_caches_are_split_by_rows_and_heads(seen):
  assert seen["cache"] == [2, 2, 4, 6]


def test_caches_of_a_replicated_model_are_split_by_rows(seen):
  assert seen["replicated cache"] == [2, 8, 4, 6]


def test_checkpoints_load_in_parts(seen):
  assert seen["loaded"] == {
      "equal": True,
      "embedding": [12, 32],
      "query": [32, 8],
      "out": [8, 32],
      "norm": [32],
  }


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "devices",
            "`data` times `model` must be the number of devices, 8."
            " Got 3 times 2.",
        ),
        (
            "negative",
            "`data` times `model` must be the number of devices, 8."
            " Got -2 times -4.",
        ),
        (
            "vocab",
            "The axis `vocab` of decoder/logits_dense/kernel must be divisible"
            " by the 8 devices along `model` of the mesh. Got 42.",
        ),
        (
            "heads",
            "The axis `heads` of decoder/relpos_bias/rel_embedding must be"
            " divisible by the 8 devices along `model` of the mesh. Got 4.",
        ),
        ("packed", "`config.packed` must be False on a mesh. Got True."),
        (
            "draft_sharding",
            "`draft_sharding` must be one of ('replicated', 'sharded')."
            " Got 'split'.",
        ),
    ],
)
def test_errors(seen, name, message):
  assert seen["errors"][name] == message


def test_meshes_of_another_kind(seen):
  assert "of type Auto, as from `make_mesh`" in seen["errors"]["axis types"]


@pytest.mark.parametrize("num_encoder_layers", [0, 1])
def test_every_parameter_has_a_rule(num_encoder_layers):
  config = T5Config(8, 4, 2, 2, 8, num_encoder_layers, 1)
  mesh = partitioning.make_mesh(1, 1, jax.devices()[:1])
  shardings = jax.tree.leaves(partitioning.param_shardings(config, mesh))
  assert {s.mesh for s in shardings} == {mesh}


def test_rules_name_the_axes_of_t5x():
  rules = dict(partitioning.AXIS_RULES)
  split = {name for name, axis in rules.items() if axis == "model"}
  assert split == {"vocab", "mlp", "heads", "joined_kv"}
  assert rules["batch"] == "data"

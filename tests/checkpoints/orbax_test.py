"""Tests of T5X's checkpoints in Orbax format: written, read back, damaged."""

import json

import numpy as np
import orbax.checkpoint as ocp
import pytest

from spec_t5x import checkpoints
from spec_t5x.checkpoints import layout
from spec_t5x.checkpoints.orbax import OrbaxReader


def save(directory, params, dtype="float32"):
  return checkpoints.save_t5x(directory, params, 3, "orbax", dtype)


def save_state(directory, tree):
  """Writes any train state as T5X's manager would."""
  handler = ocp.CompositeCheckpointHandler(state=ocp.PyTreeCheckpointHandler())
  with ocp.Checkpointer(handler) as checkpointer:
    checkpointer.save(
        directory, ocp.args.Composite(state=ocp.args.PyTreeSave(tree))
    )
  return directory


def read_all(directory):
  reader = OrbaxReader(directory)
  paths = reader.paths()
  tensors = {path: reader.read(path) for path in paths}
  for path, value in tensors.items():
    assert (value.shape, value.dtype.name) == paths[path]
  return reader.config, layout.unflatten(tensors)


@pytest.fixture
def saved(tmp_path, t5_1_1):
  """A checkpoint of `t5_1_1`."""
  return save(tmp_path, t5_1_1[1])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_round_trip(tmp_path, model, same_params, dtype):
  directory = save(tmp_path, model[1], dtype)
  config, params = read_all(directory)
  assert config == model[0]
  same_params(params, model[1], dtype)


def test_layout_on_disk(saved):
  assert saved.name == "checkpoint_3"
  metadata = json.loads((saved / "_CHECKPOINT_METADATA").read_text())
  assert metadata["item_handlers"].keys() == {"state"}
  state = ocp.PyTreeCheckpointHandler().restore(saved / "state")
  assert state.keys() == {"state", "target"}
  assert state["state"] == {"step": 3}


def test_optimizer_states_are_not_read(tmp_path, t5_1_1, same_params):
  state = {"step": np.int32(1), "param_states": {"a": np.zeros(3)}}
  tree = {"state": state, "target": t5_1_1[1]}
  directory = save_state(tmp_path / "checkpoint_1", tree)
  same_params(read_all(directory)[1], t5_1_1[1])


# Orbax closes its event loop on an error and then complains of it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
class TestDamage:

  @pytest.mark.parametrize("truncate", [False, True])
  def test_lost_data(self, saved, truncate):
    for path in (saved / "state").glob("**/d/*"):
      if truncate:
        path.write_bytes(path.read_bytes()[:30])
      else:
        path.unlink()
    with pytest.raises(ValueError, match="in .* is missing or damaged"):
      read_all(saved)

  @pytest.mark.parametrize("name", ["_METADATA", "manifest.ocdbt"])
  def test_truncated_metadata(self, saved, name):
    path = saved / "state" / name
    path.write_bytes(path.read_bytes()[:40])
    message = "`state` in .* is missing or damaged"
    with pytest.raises(ValueError, match=message):
      OrbaxReader(saved)

  def test_no_target(self, tmp_path):
    directory = save_state(tmp_path / "checkpoint_1", {"a": np.zeros(3)})
    with pytest.raises(ValueError, match="`state` in .*KeyError.*target"):
      OrbaxReader(directory)

  def test_unknown_tensor(self, tmp_path, t5_1_1):
    tree = {"target": t5_1_1[1] | {"adapter": np.zeros(1, np.float32)}}
    directory = save_state(tmp_path / "checkpoint_1", tree)
    with pytest.raises(ValueError, match="holds unknown tensors adapter"):
      OrbaxReader(directory)

  def test_dtype(self, tmp_path, t5_1_1):
    params = t5_1_1[1]
    params["encoder"]["encoder_norm"]["scale"] = np.zeros(8, np.int8)
    directory = save_state(tmp_path / "checkpoint_1", {"target": params})
    with pytest.raises(ValueError, match="encoder_norm/scale.*Got int8"):
      OrbaxReader(directory)


def test_link_outside(tmp_path, saved):
  (saved / "state" / "manifest.ocdbt").rename(tmp_path / "outside")
  (saved / "state" / "manifest.ocdbt").symlink_to(tmp_path / "outside")
  with pytest.raises(ValueError, match="`state/manifest.ocdbt` leads out"):
    OrbaxReader(saved)

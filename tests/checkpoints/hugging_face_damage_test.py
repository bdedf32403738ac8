"""Tests of Hugging Face directories that are damaged or mean harm."""

import json
import pickle
import re

import ml_dtypes
import numpy as np
import pytest
from hugging_face_files import edit_json, edit_tensors

from spec_t5x import checkpoints
from spec_t5x.checkpoints.hugging_face import HuggingFaceReader


@pytest.fixture
def saved(tmp_path, t5_1_1):
  """A directory that holds `t5_1_1`, in one file."""
  return checkpoints.save_hugging_face(tmp_path / "saved", *t5_1_1)


@pytest.fixture
def sharded(tmp_path, t5_1_1):
  """A directory that holds `t5_1_1`, in several files."""
  return checkpoints.save_hugging_face(
      tmp_path / "sharded", *t5_1_1, max_shard_bytes=1000
  )


class TestDamage:
  NAME = "encoder.block.0.layer.0.SelfAttention.q.weight"

  @pytest.mark.parametrize(
      ("value", "message"),
      [
          (None, "lacks tensors NAME"),
          (np.zeros((8, 12), np.float32), r"shape \(12, 8\). Got \(8, 12\)"),
          (np.zeros((12, 8), np.int8), "`NAME` .* among .*Got I8"),
          (np.zeros((12, 8), np.float64), "`NAME` .* among .*Got F64"),
          (
              np.zeros((12, 8), ml_dtypes.float8_e4m3fn),
              "`NAME` .* among .*Got F8_E4M3",
          ),
      ],
  )
  def test_tensor(self, saved, value, message):
    edit_tensors(saved, lambda t: {self.NAME: value})
    message = message.replace("NAME", re.escape(self.NAME))
    with pytest.raises(ValueError, match=message):
      HuggingFaceReader(saved)

  def test_unknown_tensor(self, saved):
    edit_tensors(saved, lambda t: {"lora.weight": np.zeros(1, np.float32)})
    with pytest.raises(ValueError, match="holds unknown tensors lora.weight"):
      HuggingFaceReader(saved)

  @pytest.mark.parametrize("keep", [0, 4, 100, -1])
  def test_truncated_file(self, saved, keep):
    path = saved / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    message = "`model.safetensors` in .* is missing or damaged: Safetensor"
    with pytest.raises(ValueError, match=message):
      HuggingFaceReader(saved)

  def test_no_weights(self, saved):
    (saved / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="no model.safetensors in"):
      HuggingFaceReader(saved)

  def test_missing_shard(self, sharded):
    shard = sorted(sharded.glob("*.safetensors"))[1]
    shard.unlink()
    with pytest.raises(FileNotFoundError, match=f"no {shard.name} in"):
      HuggingFaceReader(sharded)

  def test_tensor_missing_from_its_shard(self, sharded):
    index = sharded / "model.safetensors.index.json"
    weight_map = json.loads(index.read_text())["weight_map"]
    first, second = sorted(set(weight_map.values()))[:2]
    moved = next(name for name, file in weight_map.items() if file == second)
    edit_json(index, weight_map=weight_map | {moved: first})
    message = f"`{re.escape(moved)}` should be in .*{first}, says model"
    with pytest.raises(ValueError, match=message):
      HuggingFaceReader(sharded)

  @pytest.mark.parametrize("weight_map", [None, ["a"]])
  def test_malformed_index(self, sharded, weight_map):
    index = sharded / "model.safetensors.index.json"
    edit_json(index, weight_map=weight_map)
    with pytest.raises(ValueError, match="`weight_map` in .* must map"):
      HuggingFaceReader(sharded)


class TestConfinement:

  @pytest.mark.parametrize("absolute", [True, False])
  def test_index_path(self, tmp_path, saved, sharded, absolute):
    outside = saved / "model.safetensors"
    shard = str(outside) if absolute else "../saved/model.safetensors"
    index = sharded / "model.safetensors.index.json"
    edit_json(index, weight_map={"shared.weight": shard})
    message = f"`{re.escape(shard)}` leads out of the checkpoint"
    with pytest.raises(ValueError, match=message):
      HuggingFaceReader(sharded)

  @pytest.mark.parametrize(
      "name", ["config.json", "model.safetensors", "spiece.model"]
  )
  def test_link(self, tmp_path, saved, name):
    outside = tmp_path / "outside"
    outside.touch()
    (saved / name).unlink(missing_ok=True)
    (saved / name).symlink_to(outside)
    with pytest.raises(ValueError, match=f"`{name}` leads out"):
      HuggingFaceReader(saved)


class TestPickles:

  @pytest.fixture
  def poison(self, tmp_path):
    """Bytes that create a file when unpickled, and the file."""

    class Poison:

      def __reduce__(self):
        return open, (str(tmp_path / "poisoned"), "w")

    return pickle.dumps(Poison()), tmp_path / "poisoned"

  def test_poison_works(self, poison):
    data, effect = poison
    pickle.loads(data).close()
    assert effect.exists()

  @pytest.mark.parametrize(
      "name", ["pytorch_model.bin", "pytorch_model-00001-of-00002.bin"]
  )
  def test_never_loaded(self, saved, poison, name):
    data, effect = poison
    (saved / name).write_bytes(data)
    checkpoints.load_params(saved)
    (saved / "model.safetensors").unlink()
    message = "pickled weights only.* Convert them to model.safetensors"
    with pytest.raises(ValueError, match=message):
      HuggingFaceReader(saved)
    assert not effect.exists()

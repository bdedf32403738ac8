"""Tests of T5X's legacy checkpoints: written, read back, old, damaged."""

import re
import shutil

import numpy as np
import pytest
from flax import serialization

from spec_t5x import checkpoints
from spec_t5x.checkpoints import layout, legacy
from spec_t5x.checkpoints.legacy import LegacyReader

NAME = "encoder/layers_0/mlp/wo/kernel"
ZARR = "target.encoder.layers_0.mlp.wo.kernel"


def save(directory, params, dtype="float32"):
  return checkpoints.save_t5x(directory, params, step=3, dtype=dtype)


def read_all(directory):
  reader = LegacyReader(directory)
  paths = reader.paths()
  tensors = {path: reader.read(path) for path in paths}
  for path, value in tensors.items():
    assert (value.shape, value.dtype.name) == paths[path]
  return reader.config, layout.unflatten(tensors)


def edit_index(directory, edit):
  """Passes the index's content to `edit`, which changes it in place."""
  path = directory / "checkpoint"
  content = serialization.msgpack_restore(path.read_bytes())
  edit(content)
  path.write_bytes(serialization.msgpack_serialize(content))


def edit_specs(directory, edit):
  """Passes every TensorStore spec to `edit`, which changes it in place."""

  def visit(node):
    if "kvstore" in node:
      return edit(node)
    return [visit(child) for child in node.values()]

  edit_index(directory, lambda c: visit(c["optimizer"]["target"]))


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
  """The index as T5X itself writes it."""
  assert saved.name == "checkpoint_3"
  content = serialization.msgpack_restore((saved / "checkpoint").read_bytes())
  assert content.keys() == {"version", "optimizer"}
  assert content["version"] == 3
  assert content["optimizer"].keys() == {"state", "target"}
  assert content["optimizer"]["state"] == {"step": 3}
  leaf = content["optimizer"]["target"]
  for key in NAME.split("/"):
    leaf = leaf[key]
  assert leaf == {
      "driver": "zarr",
      "dtype": "float32",
      "kvstore": {"driver": "file", "path": f"{ZARR}/"},
      "metadata": {
          "chunks": [16, 8],
          "compressor": {"id": "gzip", "level": 1},
          "shape": [16, 8],
      },
  }
  assert {p.name for p in (saved / ZARR).iterdir()} == {".zarray", "0.0"}


def test_large_tensors_are_cut(tmp_path, t5_1_1, same_params, monkeypatch):
  monkeypatch.setattr(legacy, "_CHUNK_BYTES", 200)
  directory = save(tmp_path, t5_1_1[1])
  chunks = {p.name for p in (directory / ZARR).iterdir()}
  assert chunks == {".zarray", "0.0", "1.0", "2.0"}
  same_params(read_all(directory)[1], t5_1_1[1])


def test_zeros_survive(tmp_path, t5_1_1, same_params):
  """Stores may leave out what equals the fill value."""
  params = layout.flatten(t5_1_1[1])
  params[NAME] = np.zeros_like(params[NAME])
  params = layout.unflatten(params)
  same_params(read_all(save(tmp_path, params))[1], params)


class TestOlderFiles:

  @pytest.mark.parametrize(
      "store",
      [
          {"driver": "gfile"},
          {"driver": "gcs", "bucket": "t5x-dummy-bucket"},
      ],
  )
  def test_written_elsewhere(self, saved, t5_1_1, same_params, store):
    edit_specs(saved, lambda spec: spec["kvstore"].update(store))
    same_params(read_all(saved)[1], t5_1_1[1])

  def test_path_in_the_outer_dict(self, saved, t5_1_1, same_params):
    def edit(spec):
      spec["path"] = spec["kvstore"].pop("path").rstrip("/")

    edit_specs(saved, edit)
    same_params(read_all(saved)[1], t5_1_1[1])

  def test_inline_arrays(self, tmp_path, t5_1_1, same_params):
    config, params = t5_1_1
    state = {"step": 5, "param_states": {"a": np.zeros(3)}}
    content = {
        "version": 3,
        "optimizer": {"state": state, "target": params},
    }
    data = serialization.msgpack_serialize(content)
    (tmp_path / "checkpoint").write_bytes(data)
    assert read_all(tmp_path)[0] == config
    same_params(read_all(tmp_path)[1], params)

  def test_bare_state(self, tmp_path, t5_1_1, same_params):
    data = serialization.msgpack_serialize({"target": t5_1_1[1]})
    (tmp_path / "checkpoint").write_bytes(data)
    same_params(read_all(tmp_path)[1], t5_1_1[1])

  def test_optimizer_states_are_not_looked_at(self, saved):
    spec = {"driver": "zarr", "kvstore": {"driver": "file", "path": "no/"}}

    def edit(content):
      content["optimizer"]["state"]["param_states"] = {"a": spec}

    edit_index(saved, edit)
    read_all(saved)


class TestDamage:

  def test_missing_chunk_is_not_zeros(self, saved):
    (saved / ZARR / "0.0").unlink()
    reader = LegacyReader(saved)
    with pytest.raises(ValueError, match=f"`{NAME}` in .*missing or damaged"):
      reader.read(NAME)

  def test_truncated_chunk(self, saved):
    chunk = saved / ZARR / "0.0"
    chunk.write_bytes(chunk.read_bytes()[:20])
    reader = LegacyReader(saved)
    with pytest.raises(ValueError, match=f"`{NAME}` in .*missing or damaged"):
      reader.read(NAME)

  def test_missing_array(self, saved):
    shutil.rmtree(saved / ZARR)
    with pytest.raises(ValueError, match=f"`{NAME}` in .*missing or damaged"):
      LegacyReader(saved)

  @pytest.mark.parametrize("keep", [0, 10, -1])
  def test_truncated_index(self, saved, keep):
    path = saved / "checkpoint"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match="`checkpoint` in .*damaged"):
      LegacyReader(saved)

  @pytest.mark.parametrize(
      "content",
      [
          b'model_checkpoint_path: "model.ckpt-1000"\n',
          serialization.msgpack_serialize({"version": 3, "optimizer": {}}),
          serialization.msgpack_serialize({"target": 3}),
      ],
      ids=["tensorflow", "no target", "target of one number"],
  )
  def test_other_index(self, saved, content):
    (saved / "checkpoint").write_bytes(content)
    with pytest.raises(ValueError, match="`checkpoint` in .*damaged"):
      LegacyReader(saved)

  def test_missing_tensor(self, saved):
    def edit(content):
      del content["optimizer"]["target"]["encoder"]["encoder_norm"]

    edit_index(saved, edit)
    message = "lacks tensors encoder/encoder_norm/scale"
    with pytest.raises(ValueError, match=message):
      LegacyReader(saved)

  def test_unknown_tensor(self, saved):
    def edit(content):
      content["optimizer"]["target"]["adapter"] = np.zeros(1, np.float32)

    edit_index(saved, edit)
    with pytest.raises(ValueError, match="holds unknown tensors adapter"):
      LegacyReader(saved)

  def test_shape(self, saved, t5_1_1):
    def edit(content):
      stack = content["optimizer"]["target"]["encoder"]
      stack["encoder_norm"]["scale"] = np.zeros(9, np.float32)

    edit_index(saved, edit)
    message = r"`encoder/encoder_norm/scale` .* shape \(8,\). Got \(9,\)"
    with pytest.raises(ValueError, match=message):
      LegacyReader(saved)

  def test_bfloat16_as_uint16(self, saved):
    """As version 2 wrote it; T5X refuses it too."""

    def edit(content):
      stack = content["optimizer"]["target"]["encoder"]
      stack["encoder_norm"]["scale"] = np.zeros(8, np.uint16)

    edit_index(saved, edit)
    with pytest.raises(ValueError, match="encoder_norm/scale.*Got uint16"):
      LegacyReader(saved)

  @pytest.mark.parametrize(
      "change",
      [
          {"kvstore": {"driver": "http", "path": f"{ZARR}/"}},
          {"kvstore": "file:///etc/"},
          {"driver": "n5"},
          {"kvstore": {"driver": "file"}},
      ],
  )
  def test_other_stores(self, saved, change):
    edit_specs(saved, lambda spec: spec.update(change))
    with pytest.raises(ValueError, match="must be a zarr array in files"):
      LegacyReader(saved)


class TestConfinement:

  @pytest.mark.parametrize("form", ["{}", "../{}", "x/../../{}"])
  def test_path(self, tmp_path, saved, form):
    outside = tmp_path / "outside"
    shutil.copytree(saved / ZARR, outside)
    path = form.format(outside if form == "{}" else "outside")
    edit_specs(saved, lambda spec: spec["kvstore"].update(path=path))
    message = f"`{re.escape(path)}` leads out of the checkpoint"
    with pytest.raises(ValueError, match=message):
      LegacyReader(saved)

  @pytest.mark.parametrize("name", ["checkpoint", ZARR, f"{ZARR}/0.0"])
  def test_link(self, tmp_path, saved, name):
    (saved / name).rename(tmp_path / "outside")
    (saved / name).symlink_to(tmp_path / "outside")
    with pytest.raises(ValueError, match=f"`{name}` leads out"):
      LegacyReader(saved)

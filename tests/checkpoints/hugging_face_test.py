"""Tests of Hugging Face directories: written, read back, damaged."""

import json
import pickle
import re

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from spec_t5x.checkpoints import hugging_face, layout
from spec_t5x.checkpoints.hugging_face import HuggingFaceReader

SHARD_BYTES = 1000


def save(directory, model, **kwargs):
  return hugging_face.save_hugging_face(
      directory, *model, **{"dtype": "float32", **kwargs}
  )


def read_all(directory, config=None):
  reader = HuggingFaceReader(directory, config)
  paths = reader.paths()
  tensors = {path: reader.read(path) for path in paths}
  for path, value in tensors.items():
    assert (value.shape, value.dtype.name) == paths[path]
  return reader.config, layout.unflatten(tensors)


def edit_tensors(directory, change):
  """Rewrites model.safetensors with some tensors replaced or (None) gone."""
  path = directory / "model.safetensors"
  tensors = load_file(path)
  for name, value in change(tensors).items():
    tensors[name] = value
    if value is None:
      del tensors[name]
  save_file(tensors, path)


def edit_json(path, **changes):
  path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.fixture
def saved(tmp_path, t5_1_1):
  """A directory that holds `t5_1_1`, in one file."""
  return save(tmp_path / "saved", t5_1_1)


@pytest.fixture
def sharded(tmp_path, t5_1_1):
  """A directory that holds `t5_1_1`, in several files."""
  directory = tmp_path / "sharded"
  return save(directory, t5_1_1, max_shard_bytes=SHARD_BYTES)


class TestRoundTrip:

  @pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
  def test_one_file(self, tmp_path, model, same_params, dtype):
    directory = save(tmp_path / "saved", model, dtype=dtype)
    config, params = read_all(directory)
    assert config == model[0]
    same_params(params, model[1], dtype)
    names = {path.name for path in directory.iterdir()}
    assert names == {"config.json", "model.safetensors"}

  @pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
  def test_shards(self, tmp_path, model, same_params, dtype):
    directory = tmp_path / "sharded"
    save(directory, model, dtype=dtype, max_shard_bytes=SHARD_BYTES)
    config, params = read_all(directory)
    assert config == model[0]
    same_params(params, model[1], dtype)
    index = json.loads((directory / "model.safetensors.index.json").read_text())
    shards = sorted(directory.glob("*.safetensors"))
    assert len(shards) > 2
    assert {s.name for s in shards} == set(index["weight_map"].values())
    sizes = [[v.nbytes for v in load_file(s).values()] for s in shards]
    assert all(sum(s) <= SHARD_BYTES or len(s) == 1 for s in sizes)
    assert sum(map(sum, sizes)) == index["metadata"]["total_size"]

  def test_vocabulary(self, tmp_path, t5_1_1):
    path = tmp_path / "some.model"
    path.write_bytes(b"pieces")
    directory = save(tmp_path / "saved", t5_1_1, vocabulary=path)
    vocabulary = HuggingFaceReader(directory).vocabulary
    assert vocabulary.name == "spiece.model"
    assert vocabulary.read_bytes() == b"pieces"

  def test_from_a_reader(self, tmp_path, saved, t5_1_1, same_params):
    reader = HuggingFaceReader(saved)
    assert reader.vocabulary is None
    save(tmp_path / "copy", (reader.config, reader))
    same_params(read_all(tmp_path / "copy")[1], t5_1_1[1])


class TestSaveRejects:

  def test_other_params(self, tmp_path, t5_1_1):
    config, params = t5_1_1
    del params["encoder"]["encoder_norm"]
    message = "`params` lacks tensors encoder/encoder_norm/scale"
    with pytest.raises(ValueError, match=message):
      save(tmp_path / "saved", (config, params))
    assert not any(tmp_path.iterdir())

  @pytest.mark.parametrize(
      ("argument", "value", "message"),
      [
          ("dtype", "float16", "must be 'float32' or 'bfloat16'"),
          ("max_shard_bytes", 0, "must be positive. Got 0"),
      ],
  )
  def test_arguments(self, tmp_path, t5_1_1, argument, value, message):
    with pytest.raises(ValueError, match=f"`{argument}` {message}"):
      save(tmp_path / "saved", t5_1_1, **{argument: value})
    assert not any(tmp_path.iterdir())

  def test_missing_vocabulary(self, tmp_path, t5_1_1):
    with pytest.raises(FileNotFoundError, match="absent.model"):
      save(tmp_path / "saved", t5_1_1, vocabulary=tmp_path / "absent.model")
    assert not any(tmp_path.iterdir())

  def test_existing_directory(self, saved, t5_1_1):
    with pytest.raises(ValueError, match="new or empty directory"):
      save(saved, t5_1_1)


class TestEmbeddingCopies:
  COPIES = (
      "encoder.embed_tokens.weight",
      "decoder.embed_tokens.weight",
      "lm_head.weight",
  )

  @pytest.fixture
  def directory(self, tmp_path, t5_1_0, monkeypatch):
    # Tables are compared in several blocks, the last one short.
    monkeypatch.setattr(hugging_face, "_ROWS", 7)
    return save(tmp_path / "saved", t5_1_0)

  def test_equal_ones_are_read_once(self, directory, t5_1_0, same_params):
    edit_tensors(
        directory, lambda t: dict.fromkeys(self.COPIES, t["shared.weight"])
    )
    config, params = read_all(directory)
    assert config == t5_1_0[0]
    same_params(params, t5_1_0[1])

  def test_any_of_them_stands_for_the_table(
      self, directory, t5_1_0, same_params
  ):
    edit_tensors(
        directory,
        lambda t: {
            "decoder.embed_tokens.weight": t["shared.weight"],
            "shared.weight": None,
        },
    )
    same_params(read_all(directory)[1], t5_1_0[1])

  @pytest.mark.parametrize("name", COPIES)
  @pytest.mark.parametrize("how", ["value", "shape", "dtype"])
  def test_other_ones_raise(self, directory, name, how):
    def change(tensors):
      table = tensors["shared.weight"].copy()
      table[-1, -1] += 1
      other = {
          "value": table,
          "shape": table[:-1],
          "dtype": tensors["shared.weight"].astype(np.float16),
      }
      return {name: other[how]}

    edit_tensors(directory, change)
    with pytest.raises(ValueError, match=f"`{name}` .* must equal `shared.we"):
      HuggingFaceReader(directory)

  def test_unscaled_output_through_the_embedding(
      self, saved, t5_1_1, same_params
  ):
    """What `transformers` 5 writes for an untied config it has tied."""
    edit_tensors(saved, lambda t: {"lm_head.weight": None})
    config, params = t5_1_1
    params["decoder"]["logits_dense"]["kernel"] = params["token_embedder"][
        "embedding"
    ].T
    assert read_all(saved)[0] == config
    same_params(read_all(saved)[1], params)


def test_leftover_of_the_first_t5_code(saved, t5_1_1, same_params):
  name = (
      "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
  )
  edit_tensors(saved, lambda t: {name: np.zeros((32, 4), np.float32)})
  same_params(read_all(saved)[1], t5_1_1[1])


def test_float16(saved, t5_1_1):
  edit_tensors(saved, lambda t: {k: v.astype(np.float16) for k, v in t.items()})
  tensors = layout.flatten(read_all(saved)[1])
  for path, value in layout.flatten(t5_1_1[1]).items():
    np.testing.assert_array_equal(tensors[path], value.astype(np.float16))


def test_given_config(tmp_path, saved, t5_1_1):
  config, _ = t5_1_1
  edit_json(saved / "config.json", d_ff=99)
  assert read_all(saved, config)[0] is config
  with pytest.raises(ValueError, match=r"must have shape \(99, 8\). Got \(16"):
    HuggingFaceReader(saved)


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
    read_all(saved)
    (saved / "model.safetensors").unlink()
    message = "pickled weights only.* Convert them to model.safetensors"
    with pytest.raises(ValueError, match=message):
      HuggingFaceReader(saved)
    assert not effect.exists()

"""Tests of Hugging Face directories: written, read back, damaged."""

import json

import numpy as np
import pytest
from hugging_face_files import edit_json, edit_tensors
from safetensors.numpy import load_file

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


@pytest.fixture
def saved(tmp_path, t5_1_1):
  """A directory that holds `t5_1_1`, in one file."""
  return save(tmp_path / "saved", t5_1_1)


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

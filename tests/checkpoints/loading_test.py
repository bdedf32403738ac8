"""Tests of opening and loading: any format, one tensor at a time."""

import dataclasses
import subprocess
import sys
import tracemalloc
import weakref

import jax
import numpy as np
import pytest

from spec_t5x import checkpoints
from spec_t5x.checkpoints import layout

FORMATS = ("hugging_face", "legacy", "orbax")


def save(directory, format, model, dtype="float32"):
  config, params = model
  if format == "hugging_face":
    return checkpoints.save_hugging_face(
        directory / "hf", config, params, dtype
    )
  return checkpoints.save_t5x(directory, params, 7, format, dtype)


@pytest.fixture(params=FORMATS)
def format(request):
  return request.param


class TestOpenCheckpoint:

  def test_detects_the_format(self, tmp_path, format, model):
    reader = checkpoints.open_checkpoint(save(tmp_path, format, model))
    assert type(reader).__name__.lower() == format.replace("_", "") + "reader"
    assert reader.config == model[0]

  def test_absent(self, tmp_path):
    with pytest.raises(FileNotFoundError, match="no checkpoint directory .*ab"):
      checkpoints.open_checkpoint(tmp_path / "ab")

  def test_file(self, tmp_path):
    (tmp_path / "checkpoint").touch()
    with pytest.raises(ValueError, match="must be a directory. Got the file"):
      checkpoints.open_checkpoint(tmp_path / "checkpoint")

  def test_other_directory(self, tmp_path):
    with pytest.raises(ValueError, match="holds neither config.json.*`state`"):
      checkpoints.open_checkpoint(tmp_path)

  def test_directory_of_checkpoints(self, tmp_path):
    for step in (9, 100, 10):
      (tmp_path / f"checkpoint_{step}").mkdir()
    message = "checkpoint_9, checkpoint_10, checkpoint_100. Pass one of them"
    with pytest.raises(ValueError, match=message):
      checkpoints.open_checkpoint(tmp_path)


class TestLoadParams:

  @pytest.mark.parametrize("stored", ["float32", "bfloat16"])
  @pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
  def test_casts(self, tmp_path, format, t5_1_1, same_params, stored, dtype):
    directory = save(tmp_path, format, t5_1_1, stored)
    config, params = checkpoints.load_params(directory, dtype)
    assert config == t5_1_1[0]
    assert all(isinstance(x, jax.Array) for x in jax.tree.leaves(params))
    rounded = jax.tree.map(
        lambda x: x.astype(layout.parameter_dtype(stored)), t5_1_1[1]
    )
    same_params(params, rounded, dtype)

  def test_put_places_each_tensor(self, tmp_path, format, t5_1_1):
    mesh = jax.make_mesh((1,), ("model",))
    sharding = jax.NamedSharding(mesh, jax.P())
    seen = []

    def put(path, value):
      seen.append(path)
      assert isinstance(value, np.ndarray)
      return jax.device_put(value, sharding)

    directory = save(tmp_path, format, t5_1_1)
    _, params = checkpoints.load_params(directory, put=put)
    assert set(seen) == layout.parameter_shapes(t5_1_1[0]).keys()
    assert len(seen) == len(set(seen))
    assert {x.sharding for x in jax.tree.leaves(params)} == {sharding}

  def test_bad_dtype(self, tmp_path):
    with pytest.raises(ValueError, match="`dtype` must be 'float32' or"):
      checkpoints.load_params(tmp_path, "int8")

  def test_given_config(self, tmp_path, format, t5_1_1):
    """For what a T5X checkpoint does not tell."""
    directory = save(tmp_path, format, t5_1_1)
    config = dataclasses.replace(
        t5_1_1[0], mlp_activations=("silu", "linear"), dtype="bfloat16"
    )
    assert checkpoints.load_params(directory, config=config)[0] is config

  def test_given_config_must_fit(self, tmp_path, format, t5_1_1):
    directory = save(tmp_path, format, t5_1_1)
    config = dataclasses.replace(t5_1_1[0], num_decoder_layers=3)
    with pytest.raises(ValueError, match="lacks tensors decoder.*2"):
      checkpoints.load_params(directory, config=config)


class TestStreaming:
  """No more than one tensor is alive while a model passes through."""

  @pytest.fixture
  def big(self, t5_1_1):
    """A model whose largest tensor, of 256 KiB, is a ninth of it."""
    config = dataclasses.replace(
        t5_1_1[0], emb_dim=128, mlp_dim=128, head_dim=32, vocab_size=512
    )
    rng = np.random.default_rng(0)
    params = {
        path: rng.standard_normal(shape).astype(np.float32)
        for path, shape in layout.parameter_shapes(config).items()
    }
    return config, layout.unflatten(params)

  LARGEST = 512 * 128 * 4

  def test_tensors_die_before_the_next_is_read(self, tmp_path, format, big):
    alive = []

    def put(path, value):
      del path
      assert not any(reference() is not None for reference in alive)
      alive.append(weakref.ref(value))

    checkpoints.load_params(save(tmp_path, format, big), put=put)
    assert len(alive) == len(layout.flatten(big[1]))

  def test_peak_memory_of_loading(self, tmp_path, format, big):
    directory = save(tmp_path, format, big)
    checkpoints.load_params(directory)  # Imports and caches.
    total = sum(x.nbytes for x in jax.tree.leaves(big[1]))
    tracemalloc.start()
    checkpoints.load_params(directory, put=lambda path, value: None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total > 8 * self.LARGEST
    assert peak < 3 * self.LARGEST

  @pytest.mark.parametrize(
      ("source", "target"),
      [("hugging_face", "legacy"), ("legacy", "hugging_face")],
  )
  def test_peak_memory_of_converting(self, tmp_path, source, target, big):
    source = save(tmp_path / "source", source, big)
    reader = checkpoints.open_checkpoint(source)

    def convert(directory):
      if target == "legacy":
        checkpoints.save_t5x(directory, reader)
      else:
        checkpoints.save_hugging_face(
            directory, reader.config, reader, max_shard_bytes=self.LARGEST
        )

    convert(tmp_path / "first")  # Imports and caches.
    tracemalloc.start()
    convert(tmp_path / "second")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 * self.LARGEST


def test_import_is_light():
  """Slow libraries wait until a format needs them."""
  code = (
      "import sys, spec_t5x.checkpoints;"
      "slow = {'tensorstore', 'orbax', 'huggingface_hub', 'torch'};"
      "sys.exit(str(slow & sys.modules.keys()) if slow & sys.modules.keys()"
      " else 0)"
  )
  done = subprocess.run(
      [sys.executable, "-c", code], capture_output=True, text=True, check=False
  )
  assert done.returncode == 0, done.stderr

"""Tests against T5X itself, where it is installed: it restores ours."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

from spec_t5x import checkpoints
from spec_t5x.checkpoints import layout

t5x_checkpoints = pytest.importorskip("t5x.checkpoints")
pytestmark = pytest.mark.slow


@functools.cache
def initializer():
  """T5X's train state of the tiny T5 1.1, without an optimizer."""
  import seqio
  from t5x import models, partitioning, utils
  from t5x.examples.t5 import network

  config = network.T5Config(
      vocab_size=40,
      dtype="float32",
      emb_dim=8,
      num_heads=4,
      num_encoder_layers=1,
      num_decoder_layers=2,
      head_dim=3,
      mlp_dim=16,
      mlp_activations=("gelu", "linear"),
      logits_via_embedding=False,
  )
  vocabulary = seqio.PassThroughVocabulary(40, eos_id=1)
  model = models.EncoderDecoderModel(
      module=network.Transformer(config),
      input_vocabulary=vocabulary,
      output_vocabulary=vocabulary,
      optimizer_def=None,
  )
  partitioner = partitioning.PjitPartitioner(num_partitions=1)
  state = utils.TrainStateInitializer(
      optimizer_def=None,
      init_fn=model.get_initial_variables,
      input_shapes={
          "encoder_input_tokens": (2, 6),
          "decoder_input_tokens": (2, 5),
      },
      partitioner=partitioner,
  )
  return state, partitioner


def manager(format, directory, dtype=None):
  """T5X's checkpointer of a format."""
  initial, partitioner = initializer()
  state = initial.global_train_state_shape
  if format == "legacy":
    return t5x_checkpoints.Checkpointer(
        state, partitioner, str(directory), restore_dtype=dtype
    )
  return t5x_checkpoints.OrbaxCheckpointManagerInterface(
      str(directory), state, partitioner, restore_dtype=dtype
  )


# T5X's Orbax manager, its default, restores both formats.
@pytest.mark.parametrize(
    ("format", "through"),
    [("legacy", "legacy"), ("legacy", "orbax"), ("orbax", "orbax")],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_t5x_restores_ours(
    tmp_path, t5_1_1, same_params, format, through, dtype
):
  path = checkpoints.save_t5x(tmp_path, t5_1_1[1], 5, format, dtype)
  restored = manager(through, tmp_path, jnp.dtype(dtype)).restore(
      path=str(path)
  )
  assert int(restored.step) == 5
  same_params(restored.params, t5_1_1[1], dtype)


def test_t5x_loads_ours_without_a_model(tmp_path, t5_1_1, same_params):
  path = checkpoints.save_t5x(tmp_path, t5_1_1[1])
  same_params(
      t5x_checkpoints.load_t5x_checkpoint(str(path))["target"], t5_1_1[1]
  )


@pytest.mark.parametrize("format", ["legacy", "orbax"])
def test_we_read_theirs(tmp_path, format, t5_1_1, same_params):
  state, _ = initializer()
  theirs = state.from_scratch(np.zeros(2, np.uint32)).replace_params(
      layout.unflatten(
          {k: jnp.asarray(v) for k, v in layout.flatten(t5_1_1[1]).items()}
      )
  )
  writer = manager(format, tmp_path)
  writer.save(theirs.replace_step(7))
  if format == "orbax":
    writer.wait_until_finished()
  config, params = checkpoints.load_params(tmp_path / "checkpoint_7")
  assert config == t5_1_1[0]
  same_params(params, t5_1_1[1])

"""Tiny models and checkpoints, made by T5X alone."""

import functools
import os

import jax
import jax.numpy as jnp
import numpy as np
import seqio
from t5x import checkpoints, decoding, models, partitioning, utils
from t5x.examples.decoder_only import network as decoder_only
from t5x.examples.t5 import network

VOCABULARY = seqio.ByteVocabulary()
SHAPES = {"encoder_input_tokens": (4, 9), "decoder_input_tokens": (4, 10)}
SIZES = dict(
    vocab_size=384,
    emb_dim=32,
    num_heads=2,
    head_dim=8,
    mlp_dim=64,
    mlp_activations=("gelu", "linear"),
    dropout_rate=0.0,
)


def encoder_decoder(**changes):
  """The network of `t5x_tiny.gin`."""
  depths = dict(num_encoder_layers=1, num_decoder_layers=1)
  config = network.T5Config(**SIZES | depths | changes)
  return network.Transformer(config)


def causal(**changes):
  """A decoder-only network."""
  config = decoder_only.TransformerConfig(**SIZES | {"num_layers": 1} | changes)
  return decoder_only.DecoderWrapper(config)


def stock(module=None, decode_fn=None, **options):
  """T5X's own encoder-decoder model; by default it decodes by argmax."""
  options = {"temperature": 0.0} | options
  decode_fn = decode_fn or functools.partial(
      decoding.temperature_sample, **options
  )
  return models.EncoderDecoderModel(
      module or encoder_decoder(),
      VOCABULARY,
      VOCABULARY,
      optimizer_def=None,
      decode_fn=decode_fn,
  )


def params_of(model, seed=0):
  """Random weights, larger than usual ones, for decisive logits."""
  variables = model.get_initial_variables(jax.random.PRNGKey(seed), SHAPES)
  return jax.tree.map(lambda x: 1.5 * x, variables["params"])


def perturbed(params, scale=0.05, seed=7):
  """Weights of a draft that agrees with the target now and then."""
  leaves, tree = jax.tree.flatten(params)
  rng = np.random.default_rng(seed)
  noise = lambda x: jnp.asarray(rng.normal(size=x.shape), x.dtype)
  leaves = [x * (1 + scale * noise(x)) for x in leaves]
  return jax.tree.unflatten(tree, leaves)


def batch(seed=0):
  """Features of four inputs, and targets of different lengths."""
  rng = np.random.default_rng(seed)
  inputs = rng.integers(3, 259, SHAPES["encoder_input_tokens"])
  inputs[1, 5:] = 0
  targets = np.zeros(SHAPES["decoder_input_tokens"], np.int64)
  for row, length in enumerate((5, 0, 3, 9)):
    targets[row, 1 : length + 1] = rng.integers(3, 259, length)
  shifted = np.roll(targets, -1, axis=1)
  return {
      "encoder_input_tokens": jnp.asarray(inputs, "int32"),
      "decoder_input_tokens": jnp.asarray(targets, "int32"),
      "decoder_target_tokens": jnp.asarray(shifted, "int32"),
      "decoder_loss_weights": jnp.asarray(shifted > 0, "int32"),
  }


def partitioner():
  """T5X's partitioner for one device."""
  return partitioning.PjitPartitioner(num_partitions=1)


def initializer(model):
  """T5X's maker of train states."""
  return utils.TrainStateInitializer(
      optimizer_def=None,
      init_fn=model.get_initial_variables,
      input_shapes=SHAPES,
      partitioner=partitioner(),
  )


def save(directory, params, orbax, model=None):
  """Writes a checkpoint in one of T5X's formats; returns its path."""
  os.makedirs(directory)
  shape = initializer(model or stock()).global_train_state_shape
  state = shape.replace(step=np.int32(3), params=params)
  if orbax:
    manager = checkpoints.OrbaxCheckpointManagerInterface(
        str(directory), shape, partitioner()
    )
    manager.save(state)
    manager.wait_until_finished()
  else:
    checkpoints.Checkpointer(shape, partitioner(), str(directory)).save(state)
  return os.path.join(directory, "checkpoint_3")


def restore(model, target, draft, dtype="float32"):
  """Restores a pair as `infer.py` does."""
  from spec_t5x import t5x_plugin

  cfg = utils.RestoreCheckpointConfig(
      path=target,
      mode="specific",
      dtype=dtype,
      strict=False,
      checkpoint_manager_cls=functools.partial(
          t5x_plugin.PairedCheckpointManager, draft_path=draft
      ),
  )
  state, _ = utils.create_checkpoint_manager_and_restore(
      initializer(model), partitioner(), cfg, target, None, use_orbax=True
  )
  return state

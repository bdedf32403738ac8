"""Tests of growing: which layer goes where, and that nothing else changes."""

import dataclasses

import jax
import numpy as np
import pytest
from toy_training import CONFIG, make_data

from spec_t5x import optimizers, train
from spec_t5x.checkpoints import layout
from spec_t5x.config import T5Config
from spec_t5x.grow import grow

pytestmark = pytest.mark.usefixtures("quick_compilation")


def random_params(config):
  rng = np.random.default_rng(0)
  shapes = layout.parameter_shapes(config)
  return layout.unflatten(
      {p: rng.normal(0, 0.3, s).astype("float32") for p, s in shapes.items()}
  )


def deep(encoder, decoder, config=CONFIG):
  return dataclasses.replace(
      config, num_encoder_layers=encoder, num_decoder_layers=decoder
  )


@pytest.mark.parametrize(
    ("old", "new", "encoder", "decoder"),
    [
        ((1, 1), (2, 3), [0, 0], [0, 0, 0]),
        ((1, 2), (1, 4), [0], [0, 1, 0, 1]),
        ((2, 2), (3, 2), [0, 1, 0], [0, 1]),
        ((0, 1), (0, 2), [], [0, 0]),
    ],
)
def test_stacks_layers(old, new, encoder, decoder):
  config, new_config = deep(*old), deep(*new)
  params = random_params(config)
  grown = grow(config, params, new_config)
  expected = dict(params)
  for name, origins in (("encoder", encoder), ("decoder", decoder)):
    if origins:
      rest = {k: v for k, v in params[name].items() if "layers_" not in k}
      expected[name] = rest | {
          f"layers_{i}": params[name][f"layers_{j}"]
          for i, j in enumerate(origins)
      }
  jax.tree.map(np.testing.assert_array_equal, grown, expected)
  shapes = {p: x.shape for p, x in layout.flatten(grown).items()}
  assert shapes == layout.parameter_shapes(new_config)


def test_grown_models_train():
  new_config = deep(2, 2)
  grown = grow(CONFIG, random_params(CONFIG), new_config)
  schedule = optimizers.Schedule(0.01, 0, 100, 100)
  optimizer = optimizers.make_optimizer("adamw", schedule)
  trainer = train.Trainer(new_config, optimizer, params=grown)
  batch = next(make_data().train_batches(0))
  before = trainer.evaluate([batch])
  for _ in range(5):
    trainer.step(batch)
  assert trainer.evaluate([batch]) < before
  # Layers that were one go their own ways.
  first, second = (
      trainer.state.params["decoder"][f"layers_{i}"]["mlp"]["wo"]["kernel"]
      for i in (0, 1)
  )
  assert not np.array_equal(first, second)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mlp_dim": 32}, "`new_config.mlp_dim` must be 16, as in `config`."),
        (
            {"num_decoder_layers": 1},
            "`new_config.num_decoder_layers` must be at least 2. Got 1.",
        ),
        (
            {"num_encoder_layers": 0},
            "`new_config` must have an encoder iff `config` has one.",
        ),
    ],
)
def test_configurations_that_do_not_match(change, message):
  config = deep(1, 2)
  new_config = T5Config(**{**vars(config), **change})
  with pytest.raises(ValueError, match=message):
    grow(config, random_params(config), new_config)


def test_dropout_and_dtype_may_change():
  new_config = dataclasses.replace(CONFIG, dropout_rate=0.5, dtype="bfloat16")
  params = random_params(CONFIG)
  grown = grow(CONFIG, params, new_config)
  jax.tree.map(np.testing.assert_array_equal, grown, params)

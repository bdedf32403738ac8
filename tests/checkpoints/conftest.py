"""Tiny models of every architecture that checkpoints may hold."""

import numpy as np
import pytest

from spec_t5x.checkpoints import layout
from spec_t5x.config import T5Config

_SIZES = dict(vocab_size=40, emb_dim=8, num_heads=4, head_dim=3, mlp_dim=16)
_T5_1_0 = dict(mlp_activations=("relu",), logits_via_embedding=True)

CONFIGS = {
    "t5_1_0": T5Config(
        **_SIZES, **_T5_1_0, num_encoder_layers=2, num_decoder_layers=2
    ),
    "t5_1_1": T5Config(**_SIZES, num_encoder_layers=1, num_decoder_layers=2),
    "decoder_only": T5Config(
        **_SIZES, num_encoder_layers=0, num_decoder_layers=2
    ),
    "decoder_only_1_0": T5Config(
        **_SIZES, **_T5_1_0, num_encoder_layers=0, num_decoder_layers=1
    ),
}


def random_params(config, seed=0):
  """Parameters of a model, drawn at random."""
  rng = np.random.default_rng(seed)
  return layout.unflatten(
      {
          path: rng.standard_normal(shape).astype(np.float32)
          for path, shape in layout.parameter_shapes(config).items()
      }
  )


def assert_same_params(params, expected, dtype="float32"):
  """Checks that two trees hold the same values, the second one cast."""
  params, expected = layout.flatten(params), layout.flatten(expected)
  assert params.keys() == expected.keys()
  dtype = layout.parameter_dtype(dtype)
  for path, value in expected.items():
    assert params[path].dtype == dtype, path
    np.testing.assert_array_equal(params[path], value.astype(dtype), path)


@pytest.fixture(params=CONFIGS)
def model(request):
  """(config, params) of each architecture in turn."""
  config = CONFIGS[request.param]
  return config, random_params(config)


@pytest.fixture
def t5_1_0():
  """(config, params) of a T5 1.0."""
  return CONFIGS["t5_1_0"], random_params(CONFIGS["t5_1_0"])


@pytest.fixture
def t5_1_1():
  """(config, params) of a T5 1.1."""
  return CONFIGS["t5_1_1"], random_params(CONFIGS["t5_1_1"])


@pytest.fixture
def decoder_only():
  """(config, params) of a decoder-only model."""
  return CONFIGS["decoder_only"], random_params(CONFIGS["decoder_only"])


@pytest.fixture
def same_params():
  """`assert_same_params`, for test modules."""
  return assert_same_params

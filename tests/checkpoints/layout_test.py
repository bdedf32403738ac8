"""Tests of the tensor layout: it is the network's, and tells the config."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import pytest

from spec_t5x import network
from spec_t5x.checkpoints import layout
from spec_t5x.checkpoints.layout import TensorSpec


def specs_of(config, dtype="float32"):
  return {
      path: TensorSpec(shape, dtype)
      for path, shape in layout.parameter_shapes(config).items()
  }


class TestParameterShapes:

  def test_equals_the_network(self, model):
    config, _ = model
    tokens = jnp.zeros((1, 2), jnp.int32)
    inputs = (tokens,) * (2 if config.decoder_only else 3)
    variables = jax.eval_shape(
        functools.partial(network.build(config).init, jax.random.key(0)),
        *inputs,
    )
    shapes = {
        path: leaf.shape
        for path, leaf in layout.flatten(variables["params"]).items()
    }
    assert layout.parameter_shapes(config) == shapes

  def test_rejects_a_packed_model(self, t5_1_1):
    config = dataclasses.replace(t5_1_1[0], packed=True)
    with pytest.raises(ValueError, match="packed. must be False"):
      layout.parameter_shapes(config)


class TestInferConfig:

  def test_inverts_parameter_shapes(self, model):
    config, _ = model
    assert layout.infer_config(specs_of(config), "it") == config

  def test_reads_every_size(self, t5_1_1):
    config = dataclasses.replace(
        t5_1_1[0],
        vocab_size=41,
        emb_dim=9,
        num_heads=5,
        head_dim=7,
        mlp_dim=17,
        num_encoder_layers=12,
        num_decoder_layers=3,
        relpos_num_buckets=16,
    )
    assert layout.infer_config(specs_of(config), "it") == config

  @pytest.mark.parametrize(
      "path",
      [
          "token_embedder/embedding",
          "decoder/relpos_bias/rel_embedding",
          "decoder/layers_0/self_attention/query/kernel",
          "decoder/layers_0/mlp/wi_0/kernel",
      ],
  )
  def test_missing_size(self, t5_1_1, path):
    specs = specs_of(t5_1_1[0])
    del specs[path]
    with pytest.raises(ValueError, match="architecture of it cannot be told"):
      layout.infer_config(specs, "it")

  def test_scanned_layers(self, t5_1_1):
    path = "decoder/relpos_bias/rel_embedding"
    specs = specs_of(t5_1_1[0]) | {path: TensorSpec((4, 2, 32), "float32")}
    with pytest.raises(ValueError, match=f"`{path}` with two axes.*Scanned"):
      layout.infer_config(specs, "it")

  def test_heads_must_divide(self, t5_1_1):
    path = "decoder/relpos_bias/rel_embedding"
    specs = specs_of(t5_1_1[0]) | {path: TensorSpec((5, 32), "float32")}
    with pytest.raises(ValueError, match="multiple of its 5 heads. Got 12"):
      layout.infer_config(specs, "it")


class TestCheckSpecs:
  NAME = "encoder/encoder_norm/scale"

  def check(self, config, changes, drop=()):
    specs = specs_of(config) | changes
    for name in drop:
      del specs[name]
    layout.check_specs(specs, layout.parameter_shapes(config), "it")

  @pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
  def test_accepts(self, t5_1_1, dtype):
    self.check(t5_1_1[0], {self.NAME: TensorSpec((8,), dtype)})

  def test_missing(self, t5_1_1):
    with pytest.raises(ValueError, match=f"it lacks tensors {self.NAME}."):
      self.check(t5_1_1[0], {}, drop=[self.NAME])

  def test_unknown(self, t5_1_1):
    unknown = {f"adapter_{i}": TensorSpec((8,), "float32") for i in range(6)}
    message = "it holds unknown tensors adapter_0, .*adapter_3 and 2 more"
    with pytest.raises(ValueError, match=message):
      self.check(t5_1_1[0], unknown)

  def test_shape(self, t5_1_1):
    message = rf"`{self.NAME}` in it must have shape \(8,\). Got \(9,\)."
    with pytest.raises(ValueError, match=message):
      self.check(t5_1_1[0], {self.NAME: TensorSpec((9,), "float32")})

  @pytest.mark.parametrize("dtype", ["int8", "float64", "uint16", "F8_E4M3"])
  def test_dtype(self, t5_1_1, dtype):
    message = f"`{self.NAME}` in it must have a dtype among .*Got {dtype}."
    with pytest.raises(ValueError, match=message):
      self.check(t5_1_1[0], {self.NAME: TensorSpec((8,), dtype)})


@pytest.mark.parametrize("dtype", ["float16", "int8", "f"])
def test_parameter_dtype(dtype):
  with pytest.raises(ValueError, match="must be 'float32' or 'bfloat16'"):
    layout.parameter_dtype(dtype)

"""The `decode` layout of parameters: fewer and transposed matrices.

A decode step multiplies a few rows by every matrix of the decoder. On a CPU
XLA takes two to three times as long for that when kernels are [in, out] as
when they are [out, in] and stand on the left, and every product has a fixed
cost. So the kernels that decode steps read are transposed once, and query,
key and value, and wi_0 and wi_1, are put into one matrix each.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from spec_t5x.config import T5Config
from spec_t5x.types import Params


def _stack(
    module: Mapping[str, Any], *names: str
) -> dict[str, Float[Array, "out in"]]:
  kernels = [module[name]["kernel"].T for name in names]
  return {"kernel": jnp.concatenate(kernels)}


def _pack_layer(layer: Mapping[str, Any]) -> dict[str, Any]:
  packed = dict(layer)
  attention = layer["self_attention"]
  packed["self_attention"] = {
      "qkv": _stack(attention, "query", "key", "value"),
      "out": _stack(attention, "out"),
  }
  if "encoder_decoder_attention" in layer:
    attention = layer["encoder_decoder_attention"]
    packed["encoder_decoder_attention"] = {
        "query": _stack(attention, "query"),
        "key": attention["key"],
        "value": attention["value"],
        "out": _stack(attention, "out"),
    }
  hidden = sorted(name for name in layer["mlp"] if name.startswith("wi"))
  packed["mlp"] = {
      "wi": _stack(layer["mlp"], *hidden),
      "wo": _stack(layer["mlp"], "wo"),
  }
  return packed


@jax.jit
def _pack_params(params: Params) -> Params:
  decoder = {
      name: _pack_layer(module) if name.startswith("layers_") else module
      for name, module in params["decoder"].items()
  }
  if "logits_dense" in decoder:
    decoder["logits_dense"] = _stack(decoder, "logits_dense")
  return {**params, "decoder": decoder}


def pack(config: T5Config, params: Params) -> tuple[T5Config, Params]:
  """Returns a model in the `decode` layout; its logits are the same.

  Args:
    config: configuration of a model in T5X's layout.
    params: its parameters.

  Returns:
    The configuration with `packed` set and the parameters to match. The
    encoder and the cross-attention's key and value kernels, which are read
    once per text with many rows, keep T5X's layout.

  Raises:
    ValueError: the model is packed already.
  """
  if config.packed:
    raise ValueError("`config` must not be packed. Got `packed=True`.")
  return dataclasses.replace(config, packed=True), _pack_params(params)

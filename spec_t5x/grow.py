"""Deeper models from shallow ones, by stacking trained layers.

A shallow model learns embeddings and attention at a fraction of the cost of a
step. Its layers, stacked, start a deep model far ahead of a random one (Gong
et al. 2019, "Efficient Training of BERT by Progressively Stacking").
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from spec_t5x.config import T5Config
from spec_t5x.types import Params

_DEPTHS = {"encoder": "num_encoder_layers", "decoder": "num_decoder_layers"}


def _stack(stack: Mapping[str, Any], depth: int, new_depth: int):
  others = {n: v for n, v in stack.items() if not n.startswith("layers_")}
  layers = {
      f"layers_{i}": stack[f"layers_{i % depth}"] for i in range(new_depth)
  }
  return others | layers


def grow(config: T5Config, params: Params, new_config: T5Config) -> Params:
  """Returns parameters of a deeper model.

  Layer i of the new model is layer i modulo the old depth: the old stack, on
  top of itself. Everything else is taken over.

  Args:
    config: of the trained model.
    params: its parameters.
    new_config: the same but for more layers; the dtype of activations and the
      dropout may differ, too.

  Returns:
    A tree of new arrays.

  Raises:
    ValueError: another field differs, or a depth is not at least the old one.
  """
  old, new = map(dataclasses.asdict, (config, new_config))
  for field in old.keys() - {*_DEPTHS.values(), "dtype", "dropout_rate"}:
    if new[field] != old[field]:
      raise ValueError(
          f"`new_config.{field}` must be {old[field]!r}, as in `config`."
          f" Got {new[field]!r}."
      )
  if config.decoder_only != new_config.decoder_only:
    raise ValueError("`new_config` must have an encoder iff `config` has one.")
  grown = dict(params)
  for name, field in _DEPTHS.items():
    depth, new_depth = getattr(config, field), getattr(new_config, field)
    if new_depth < depth:
      raise ValueError(
          f"`new_config.{field}` must be at least {depth}. Got {new_depth}."
      )
    if depth:
      grown[name] = _stack(params[name], depth, new_depth)
  # Copies, as training updates every array in place.
  return jax.tree.map(jnp.copy, grown)

"""Bytes and operations of one model call, counted in its traced program.

Nothing is estimated: a call is traced as the loop makes it, and the products,
the parameters and the buffers that stand in the trace are counted.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spec_t5x import network
from spec_t5x.config import T5Config
from spec_t5x.types import Params, Scorer


class Work(NamedTuple):
  """What one call of a model on one text moves and computes, on one device.

  Attributes:
    flops: of matrix products, a multiplication and an addition each.
    weight_bytes: parameters that are read; of a table of which rows are looked
      up, the rows.
    cache_bytes: buffers of keys and values read whole, as static shapes have
      it, and what is written into them.
    activation_bytes: results of matrix products, written once and read once.
  """

  flops: int
  weight_bytes: int
  cache_bytes: int
  activation_bytes: int

  @property
  def bytes(self) -> int:
    """All that is moved."""
    return self.weight_bytes + self.cache_bytes + self.activation_bytes

  def plus(self, other: "Work", times: int = 1) -> "Work":
    """Adds a multiple of another count."""
    return Work(*(a + times * b for a, b in zip(self, other, strict=True)))


def shard(config: T5Config, parts: int) -> T5Config:
  """Returns what one device of a model axis computes, as a model of its own.

  Heads, feed-forward width and vocabulary are divided (`partitioning`).

  Raises:
    ValueError: `parts` does not divide one of them.
  """
  names = ("num_heads", "mlp_dim", "vocab_size")
  for name in names:
    if getattr(config, name) % parts:
      raise ValueError(
          f"`{name}` must be divisible by {parts} devices."
          f" Got {getattr(config, name)}."
      )
  return dataclasses.replace(
      config, **{name: getattr(config, name) // parts for name in names}
  )


@functools.cache
def abstract_params(config: T5Config) -> Params:
  """Shapes of a model's parameters, all in the model's dtype."""
  tokens = jnp.ones((1, 1), "int32")
  inputs = (tokens,) * (2 if config.decoder_only else 3)
  init = network.build(config).init
  params = jax.eval_shape(init, jax.random.key(0), *inputs)["params"]
  return jax.tree.map(lambda x: _shape(x.shape, config.dtype), params)


@functools.cache
def extend_work(
    config: T5Config,
    block: int,
    length: int,
    inputs: int,
    make_scorer: Callable[[T5Config], Scorer] = network.T5Scorer,
) -> Work:
  """Counts an appended block: a decode step, or a verification.

  Args:
    config: the model, or what `shard` made of it.
    block: tokens appended.
    length: positions of the text buffer.
    inputs: positions of the inputs.
    make_scorer: makes what is called of a configuration.
  """

  def count(config):
    scorer = make_scorer(config)
    params, ids = abstract_params(config), _shape((1, inputs), "int32")
    context = jax.eval_shape(scorer.start, params, ids)
    cache = jax.eval_shape(lambda: scorer.init_cache(1, length))
    tokens, index = _shape((1, block), "int32"), _shape((1,), "int32")
    work = _count(scorer.extend, params, context, cache, tokens, index)
    read = sum(map(_bytes, jax.tree.leaves((context, cache))))
    return work._replace(cache_bytes=work.cache_bytes + read)

  return _over_layers(count, config)


@functools.cache
def start_work(config: T5Config, inputs: int) -> Work:
  """Counts what is done once per text: the encoder and its projections.

  Args:
    config: the model, or what `shard` made of it.
    inputs: positions of the inputs.
  """

  def count(config):
    scorer = network.T5Scorer(config)
    ids = _shape((1, inputs), "int32")
    return _count(scorer.start, abstract_params(config), ids)

  return _over_layers(count, config)


def _over_layers(count: Callable[[T5Config], Work], config: T5Config) -> Work:
  """Counts one and two layers; the others are like the second."""
  layers = lambda encoder, decoder: count(
      dataclasses.replace(
          config, num_encoder_layers=encoder, num_decoder_layers=decoder
      )
  )
  total = one = layers(1, 1)
  for more, second in (
      (config.num_encoder_layers - 1, layers(2, 1)),
      (config.num_decoder_layers - 1, layers(1, 2)),
  ):
    total = total.plus(second.plus(one, -1), more)
  return total


def _count(call: Callable[..., Any], params: Params, *args: Any) -> Work:
  """Counts what stands in the trace of `call(params, *args)`."""
  # Inner functions are then part of the trace, not boxes in it.
  with jax.disable_jit():
    jaxpr = jax.make_jaxpr(call)(params, *args).jaxpr
  weights = set(jaxpr.invars[: len(jax.tree.leaves(params))])
  whole, rows, flops, written, activations = set(), 0, 0, 0, 0
  for eqn in jaxpr.eqns:
    used = weights.intersection(v for v in eqn.invars if not hasattr(v, "val"))
    if eqn.primitive.name == "gather" and used:
      rows += _bytes(eqn.outvars[0].aval)
    else:
      whole |= used
    if eqn.primitive.name == "dot_general":
      flops += _dot_flops(eqn)
      activations += 2 * _bytes(eqn.outvars[0].aval)
    elif eqn.primitive.name == "dynamic_update_slice":
      written += _bytes(eqn.invars[1].aval)
  read = rows + sum(_bytes(var.aval) for var in whole)
  return Work(flops, read, written, activations)


def _dot_flops(eqn) -> int:
  (contracted, _), _ = eqn.params["dimension_numbers"]
  shape = eqn.invars[0].aval.shape
  depth = int(np.prod([shape[axis] for axis in contracted]))
  return 2 * depth * int(np.prod(eqn.outvars[0].aval.shape))


def _shape(shape: tuple[int, ...], dtype: str) -> jax.ShapeDtypeStruct:
  return jax.ShapeDtypeStruct(shape, dtype)


def _bytes(array) -> int:
  return int(np.prod(array.shape)) * array.dtype.itemsize

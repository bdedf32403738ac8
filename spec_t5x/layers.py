"""Layers of T5 in Flax Linen, with T5X's parameter names and numerics.

Two weight layouts are understood. `t5x` is the layout of T5X checkpoints:
kernels are [in, out]. `decode` is made from it by `packing.pack`: kernels of
the decoder are [out, in], and query, key and value (wi_0 and wi_1) stand in
one matrix. A CPU reads few-row products two to three times faster that way.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from flax.linen import partitioning as nn_partitioning
from jax import lax
from jaxtyping import Array, Float, Int

param_with_axes = nn_partitioning.param_with_axes
with_sharding_constraint = nn_partitioning.with_sharding_constraint


# With fewer rows a CPU is up to twice as fast if a transposed kernel stands on
# the left of the product; with more, as in training, it is a tenth slower.
_MANY_ROWS = 96
# XLA's CPU backend takes longer for 6 rows than for 8, and for 2 as long as for
# 4: the rows of a single text get rows of zeros. Not those of several texts,
# which may lie on several devices, and are many anyway.
_ROWS_AT_ONCE = 4


def project(
    x: Float[Array, "*rows in"],
    kernel: Float[Array, "m n"],
    transposed: bool,
) -> Float[Array, "*rows out"]:
  """Multiplies the last axis of `x` by a matrix, in float32 accumulation.

  Args:
    x: activations.
    kernel: [in, out], or [out, in] if `transposed`.
    transposed: whether the kernel is [out, in]; few rows are then multiplied
      with the kernel as the left operand.

  Returns:
    `x @ kernel`.
  """
  if not transposed or x.size >= _MANY_ROWS * x.shape[-1]:
    contracted = ((x.ndim - 1,), (1 if transposed else 0,))
    return lax.dot_general(x, kernel, (contracted, ((), ())))
  rows = x.reshape(-1, x.shape[-1])
  count = rows.shape[0]
  if 1 < count == x.shape[-2]:
    rows = jnp.pad(rows, ((0, -count % _ROWS_AT_ONCE), (0, 0)))
  product = lax.dot_general(kernel, rows, (((1,), (1,)), ((), ())))
  # Without the barrier XLA folds the transpose back into the slow form.
  product = lax.optimization_barrier(product).T[:count]
  return product.reshape(*x.shape[:-1], kernel.shape[0])


class Dense(nn.Module):
  """A projection without bias: T5X's `DenseGeneral` with a 2-D kernel."""

  features: int
  kernel_axes: tuple[str, str]
  dtype: Any = jnp.float32
  kernel_init: Callable[..., Array] = nn.initializers.variance_scaling(
      1.0, "fan_in", "truncated_normal"
  )
  transposed: bool = False

  @nn.compact
  def __call__(self, x: Float[Array, "*rows in"]) -> Float[Array, "*rows out"]:
    """Projects the last axis of `x` to `features`."""
    shape = (x.shape[-1], self.features)
    axes = self.kernel_axes
    if self.transposed:
      shape, axes = shape[::-1], axes[::-1]
    kernel = param_with_axes(
        "kernel", self.kernel_init, shape, jnp.float32, axes=axes
    )
    return project(
        x.astype(self.dtype), kernel.astype(self.dtype), self.transposed
    )


class LayerNorm(nn.Module):
  """T5's norm: no mean, no bias, variance in float32."""

  dtype: Any = jnp.float32
  epsilon: float = 1e-6

  @nn.compact
  def __call__(
      self, x: Float[Array, "*rows embed"]
  ) -> Float[Array, "*rows embed"]:
    """Scales `x` to unit root mean square, then by the learned scale."""
    scale = param_with_axes(
        "scale",
        nn.initializers.ones,
        (x.shape[-1],),
        jnp.float32,
        axes=("embed",),
    )
    x = x.astype(jnp.float32)
    mean_square = jnp.mean(lax.square(x), axis=-1, keepdims=True)
    y = (x * lax.rsqrt(mean_square + self.epsilon)).astype(self.dtype)
    return y * scale.astype(self.dtype)


class Embed(nn.Module):
  """Token embedding, which may also serve as the output projection."""

  num_embeddings: int
  features: int
  dtype: Any = jnp.float32

  def setup(self):
    """Declares the table."""
    self.embedding = param_with_axes(
        "embedding",
        nn.initializers.normal(stddev=1.0),
        (self.num_embeddings, self.features),
        jnp.float32,
        axes=("vocab", "embed"),
    )

  def __call__(self, ids: Int[Array, "*rows"]) -> Float[Array, "*rows embed"]:
    """Looks up ids; ids outside the table are clipped by XLA."""
    return jnp.take(self.embedding.astype(self.dtype), ids, axis=0)

  def attend(
      self, x: Float[Array, "*rows embed"]
  ) -> Float[Array, "*rows vocab"]:
    """Returns float32 logits: `x` against every embedding."""
    return project(x.astype(jnp.float32), self.embedding, transposed=True)


class Shortlist(nn.Module):
  """An output projection to some tokens of a vocabulary; others get -inf."""

  num_ids: int
  vocab_size: int

  @nn.compact
  def __call__(
      self, x: Float[Array, "*rows embed"]
  ) -> Float[Array, "*rows vocab"]:
    """Returns float32 logits: `x` against the listed tokens' rows."""
    kernel = param_with_axes(
        "kernel",
        nn.initializers.normal(stddev=1.0),
        (self.num_ids, x.shape[-1]),
        jnp.float32,
        axes=("vocab", "embed"),
    )
    # Of each token of the vocabulary: its row of the kernel, or the one behind
    # the last.
    places = param_with_axes(
        "places",
        lambda key, shape, dtype: jnp.zeros(shape, dtype),
        (self.vocab_size,),
        jnp.int32,
        axes=("vocab",),
    )
    logits = project(x.astype(jnp.float32), kernel, transposed=True)
    banned = jnp.full((*logits.shape[:-1], 1), -jnp.inf, logits.dtype)
    return jnp.take(jnp.concatenate([logits, banned], -1), places, axis=-1)


def dot_product_attention(
    query: Float[Array, "batch query heads kv"],
    key: Float[Array, "batch heads kv keys"],
    value: Float[Array, "batch heads keys kv"],
    bias: Float[Array, "#batch #heads #query keys"] | None,
    dropout: Callable[[Array], Array] | None = None,
    float32_logits: bool = False,
) -> Float[Array, "batch query heads kv"]:
  """Attention without 1/sqrt(kv): T5 folds it into the query's initialiser."""
  dtype = query.dtype
  if float32_logits:
    query, key = query.astype(jnp.float32), key.astype(jnp.float32)
  weights = jnp.einsum("bqhd,bhdk->bhqk", query, key)
  if bias is not None:
    weights = weights + bias.astype(weights.dtype)
  weights = jax.nn.softmax(weights).astype(dtype)
  if dropout is not None:
    weights = dropout(weights)
  # Asked for heads within queries, XLA's CPU backend takes three times as long.
  return jnp.moveaxis(jnp.einsum("bhqk,bhkd->bhqd", weights, value), 1, 2)


class Mlp(nn.Module):
  """Feed-forward block, plain (`wi`) or gated (`wi_0` times `wi_1`)."""

  mlp_dim: int
  activations: Sequence[str]
  dropout_rate: float = 0.0
  dtype: Any = jnp.float32
  packed: bool = False

  @nn.compact
  def __call__(
      self, x: Float[Array, "batch block embed"], deterministic: bool = True
  ) -> Float[Array, "batch block embed"]:
    """Applies the block to every position."""
    dense = functools.partial(Dense, dtype=self.dtype, transposed=self.packed)
    count = len(self.activations)
    if self.packed and count > 1:
      wide = dense(count * self.mlp_dim, ("embed", "mlp"), name="wi")(x)
      hidden = jnp.split(wide, count, axis=-1)
    else:
      names = ["wi"] if count == 1 else [f"wi_{i}" for i in range(count)]
      hidden = [
          dense(self.mlp_dim, ("embed", "mlp"), name=name)(x) for name in names
      ]
    hidden = [
        h if act == "linear" else getattr(nn, act)(h)
        for act, h in zip(self.activations, hidden, strict=True)
    ]
    y = functools.reduce(operator.mul, hidden)
    y = nn.Dropout(self.dropout_rate, broadcast_dims=(-2,))(y, deterministic)
    y = with_sharding_constraint(y, ("batch", "length", "mlp"))
    return dense(x.shape[-1], ("mlp", "embed"), name="wo")(y)

"""Multi-head attention of T5: full, cached block by block, and over inputs."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Float, Int

from spec_t5x import layers
from spec_t5x.cache import KeysValues

_HEADS_AXES = ("batch", "length", "heads", "kv")


def write_block(
    buffer: Float[Array, "batch ..."],
    block: Float[Array, "batch ..."],
    index: Int[Array, " batch"],
    axis: int,
) -> Float[Array, "batch ..."]:
  """Overwrites positions `index[b]` to `index[b] + block` of each row.

  The caller keeps `index + block <= length`: XLA would move a block that
  reaches over the edge back into the buffer, silently.

  Args:
    buffer: keys or values.
    block: what to write, shorter along `axis`.
    index: first position, one per row.
    axis: the axis of positions, negative.

  Returns:
    The buffer with the block in it.
  """
  block = block.astype(buffer.dtype)
  update = functools.partial(jax.lax.dynamic_update_slice_in_dim, axis=axis)
  if buffer.shape[0] == 1:
    return update(buffer, block, index[0])
  return jax.vmap(update)(buffer, block, index)


class MultiHeadAttention(nn.Module):
  """T5X's `MultiHeadDotProductAttention`, its decode mode by overwriting.

  Attributes:
    emb_dim: features of the inputs and of the output.
    num_heads: number of heads.
    head_dim: dimension of each head.
    dtype: dtype of the computation.
    dropout_rate: dropout of attention weights, shared along the query axis.
    float32_logits: whether attention logits are float32 whatever the dtype.
    packed: whether the kernels that decode steps read are transposed.
    packed_qkv: whether query, key and value also stand in one kernel.
  """

  emb_dim: int
  num_heads: int
  head_dim: int
  dtype: Any = jnp.float32
  dropout_rate: float = 0.0
  float32_logits: bool = False
  packed: bool = False
  packed_qkv: bool = False

  def setup(self):
    """Declares the projections under T5X's names."""
    joined = self.num_heads * self.head_dim
    scaled = nn.initializers.variance_scaling
    dense = functools.partial(
        layers.Dense,
        dtype=self.dtype,
        kernel_init=scaled(1.0, "fan_in", "normal"),
    )
    axes = ("embed", "joined_kv")
    if self.packed_qkv:
      self.qkv = dense(3 * joined, axes, transposed=True)
    else:
      # Other Transformers divide the logits by sqrt(head_dim) instead.
      query_init = scaled(1.0 / self.head_dim, "fan_in", "normal")
      self.query = dense(
          joined, axes, kernel_init=query_init, transposed=self.packed
      )
      # Keys and values of the inputs are projected once, for many rows.
      self.key = dense(joined, axes)
      self.value = dense(joined, axes)
    self.out = dense(self.emb_dim, axes[::-1], transposed=self.packed)
    self.dropout = nn.Dropout(self.dropout_rate, broadcast_dims=(-2,))

  def _heads(self, x: Float[Array, "batch block joined"]):
    # A TPU wants heads laid out apart. Without the barrier its compiler lays
    # out the kernel behind `x` that way, in every step of a draft, though `x`
    # is smaller. On a CPU kernels are packed and nothing is laid out again.
    rows = x.size // x.shape[-1]
    if rows < self.emb_dim and not self.packed:
      x = jax.lax.optimization_barrier(x)
    x = x.reshape(*x.shape[:-1], self.num_heads, self.head_dim)
    return layers.with_sharding_constraint(x, _HEADS_AXES)

  def _attend(self, query, memory: KeysValues, bias, deterministic):
    dropout = functools.partial(self.dropout, deterministic=deterministic)
    y = layers.dot_product_attention(
        query,
        memory.keys,
        memory.values,
        bias,
        None if deterministic else dropout,
        self.float32_logits,
    )
    return self.out(y.reshape(*y.shape[:-2], -1))

  def project_memory(self, x: Float[Array, "batch length embed"]) -> KeysValues:
    """Keys and values of `x`, to be attended to many times."""
    return self._memory(self.key(x), self.value(x))

  def _memory(self, keys, values) -> KeysValues:
    return KeysValues(
        jnp.moveaxis(self._heads(keys), 1, 3),
        jnp.moveaxis(self._heads(values), 1, 2),
    ).constrained()

  def attend_memory(
      self,
      x: Float[Array, "batch block embed"],
      memory: KeysValues,
      bias: Float[Array, "#batch #heads #block keys"] | None,
      deterministic: bool = True,
  ) -> Float[Array, "batch block embed"]:
    """Attends from `x` to projected keys and values."""
    query = self._heads(self.query(x))
    return self._attend(query, memory, bias, deterministic)

  def __call__(
      self,
      x: Float[Array, "batch block embed"],
      bias: Float[Array, "#batch heads block keys"],
      deterministic: bool = True,
  ) -> Float[Array, "batch block embed"]:
    """Self-attention over a whole text."""
    return self.attend_memory(x, self.project_memory(x), bias, deterministic)

  def extend(
      self,
      x: Float[Array, "batch block embed"],
      buffer: KeysValues,
      index: Int[Array, " batch"],
      bias: Float[Array, "batch heads block length"],
  ) -> tuple[Float[Array, "batch block embed"], KeysValues]:
    """Writes the block's keys and values at `index`, then attends to all."""
    if self.packed_qkv:
      query, *keys_values = jnp.split(self.qkv(x), 3, axis=-1)
      block = self._memory(*keys_values)
    else:
      query, block = self.query(x), self.project_memory(x)
    buffer = KeysValues(
        write_block(buffer.keys, block.keys, index, axis=-1),
        write_block(buffer.values, block.values, index, axis=-2),
    ).constrained()
    y = self._attend(self._heads(query), buffer, bias, deterministic=True)
    return y, buffer

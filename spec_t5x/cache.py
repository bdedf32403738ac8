"""What a decoder keeps between calls: two pytrees of plain arrays.

Neither holds an index. The loop owns the clock; rewinding a row is passing a
smaller index to `extend`.
"""

from typing import NamedTuple

import jax.numpy as jnp
from flax.linen import partitioning as nn_partitioning
from jaxtyping import Array, Float

# Logical axes of keys and of values. The length is the last axis of keys, as
# in T5X, and the last but one of values: both products of attention then read
# their buffer as it lies, and no step lays one out again.
KEY_AXES = ("batch", "heads", "kv", "length")
VALUE_AXES = ("batch", "heads", "length", "kv")


class KeysValues(NamedTuple):
  """Keys and values of one layer."""

  keys: Float[Array, "batch heads kv length"]
  values: Float[Array, "batch heads length kv"]

  @property
  def length(self) -> int:
    """Number of positions."""
    return self.keys.shape[-1]

  def constrained(self) -> "KeysValues":
    """The same, on a mesh split by batch and heads."""
    constrain = nn_partitioning.with_sharding_constraint
    return KeysValues(
        constrain(self.keys, KEY_AXES), constrain(self.values, VALUE_AXES)
    )


class Context(NamedTuple):
  """The inputs as every decode step sees them; empty without an encoder.

  Attributes:
    memory: for each decoder layer, the projected encoder outputs.
    bias: 0 at visible inputs, a large negative number at padding.
  """

  memory: tuple[KeysValues, ...] = ()
  bias: Float[Array, "batch 1 1 inputs"] | None = None


# One buffer per layer, in arrays of their own: a decode step then updates
# each in place.
Cache = tuple[KeysValues, ...]


def init_cache(
    num_layers: int,
    batch: int,
    length: int,
    num_heads: int,
    head_dim: int,
    dtype: str,
) -> Cache:
  """Returns zeroed buffers for `length` positions of `batch` rows."""
  buffers = KeysValues(
      keys=jnp.zeros((batch, num_heads, head_dim, length), dtype),
      values=jnp.zeros((batch, num_heads, length, head_dim), dtype),
  )
  return (buffers.constrained(),) * num_layers

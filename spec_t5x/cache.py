"""What a decoder keeps between calls: two pytrees of plain arrays.

Neither holds an index. The loop owns the clock; rewinding a row is passing a
smaller index to `extend`.
"""

from typing import NamedTuple

import jax.numpy as jnp
from flax.linen import partitioning as nn_partitioning
from jaxtyping import Array, Float

# Logical axes of keys, of values and of their buffers.
HEADS_AXES = ("batch", "length", "heads", "kv")


class KeysValues(NamedTuple):
  """Keys and values of one layer."""

  keys: Float[Array, "batch keys heads kv"]
  values: Float[Array, "batch keys heads kv"]


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
  shape = (batch, length, num_heads, head_dim)
  zeros = lambda: nn_partitioning.with_sharding_constraint(
      jnp.zeros(shape, dtype), HEADS_AXES
  )
  return tuple(KeysValues(zeros(), zeros()) for _ in range(num_layers))

"""Reading and writing rows of tokens, each row at its own place."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Shaped


def read_block(
    tokens: Shaped[Array, "rows length"], index: Int[Array, " rows"], size: int
) -> Shaped[Array, "rows block"]:
  """Reads `tokens[b, index[b] : index[b] + size]` of each row."""
  places = index[:, None] + jnp.arange(size)
  return jnp.take_along_axis(tokens, places, axis=1)


def write_block(
    buffer: Shaped[Array, "rows length"],
    index: Int[Array, " rows"],
    block: Shaped[Array, "rows block"],
) -> Shaped[Array, "rows length"]:
  """Overwrites `buffer[b, index[b] : index[b] + block]` of each row.

  The caller keeps `index + block <= length`: XLA would move a block that
  reaches over the edge back into the buffer, silently.
  """
  write = lambda row, at, new: jax.lax.dynamic_update_slice(row, new, (at,))
  return jax.vmap(write)(buffer, index, block.astype(buffer.dtype))

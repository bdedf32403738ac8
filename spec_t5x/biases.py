"""What is added to attention's logits: relative positions, and masks."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from flax.linen.partitioning import param_with_axes
from jaxtyping import Array, Bool, Float, Int

# T5X's additive mask. A row without any visible key gets a uniform softmax
# instead of NaN.
MASKED = -1e10


def relative_buckets(
    distance: np.ndarray,
    bidirectional: bool,
    num_buckets: int,
    max_distance: int,
) -> np.ndarray:
  """T5's bucket of each relative position.

  Computed with numpy: the logarithm sits on bucket borders, where another
  rounding would pick another bucket.

  Args:
    distance: int, key position minus query position.
    bidirectional: whether keys after the query have buckets of their own.
    num_buckets: number of buckets.
    max_distance: distances from here on share the last bucket.

  Returns:
    Bucket ids in [0, num_buckets), the shape of `distance`.
  """
  offset = np.zeros_like(distance)
  n = -distance
  if bidirectional:
    num_buckets //= 2
    offset = (n < 0).astype(np.int32) * num_buckets
    n = np.abs(n)
  else:
    n = np.maximum(n, 0)
  max_exact = num_buckets // 2
  ratio = n.astype(np.float32) / max_exact + np.finfo(np.float32).eps
  log_bucket = max_exact + (
      np.log(ratio)
      / np.log(max_distance / max_exact)
      * (num_buckets - max_exact)
  ).astype(np.int32)
  log_bucket = np.minimum(log_bucket, num_buckets - 1)
  return offset + np.where(n < max_exact, n, log_bucket)


class RelativePositionBiases(nn.Module):
  """Learned attention bias by the distance of key and query."""

  num_heads: int
  bidirectional: bool
  num_buckets: int = 32
  max_distance: int = 128
  dtype: Any = jnp.float32

  def setup(self):
    """Declares one table per stack of layers."""
    self.rel_embedding = param_with_axes(
        "rel_embedding",
        nn.initializers.variance_scaling(1.0, "fan_avg", "uniform"),
        (self.num_heads, self.num_buckets),
        jnp.float32,
        axes=("heads", "relpos_buckets"),
    )

  def __call__(
      self, positions: Int[Array, "batch query"], num_keys: int
  ) -> Float[Array, "batch heads query keys"]:
    """Bias of queries at `positions` towards keys at 0..num_keys - 1."""
    # Queries may be traced, distances are few: one table over all distances.
    limit = max(num_keys, self.max_distance)
    distances = np.arange(-limit, limit + 1, dtype=np.int32)
    buckets = relative_buckets(
        distances, self.bidirectional, self.num_buckets, self.max_distance
    )
    table = self.rel_embedding.astype(self.dtype)[:, buckets]
    distance = jnp.arange(num_keys) - positions[..., None]
    rows = jnp.clip(distance + limit, 0, 2 * limit)
    return jnp.moveaxis(jnp.take(table, rows, axis=1), 0, 1)


def mask_to_bias(
    visible: Bool[Array, "*shape"], dtype: Any
) -> Float[Array, "*shape"]:
  """Additive bias: 0 where visible, a large negative number elsewhere."""
  return jnp.where(visible, 0.0, MASKED).astype(dtype)

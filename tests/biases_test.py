import math

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from spec_t5x import biases, layers


def bucket(distance, bidirectional, num_buckets, max_distance):
  """T5's bucket of one distance, by its definition (Raffel et al. 2020, 2.1).

  Half of the buckets hold one distance each; the others grow as powers up to
  `max_distance`.
  """
  offset = 0
  if bidirectional:
    num_buckets //= 2
    offset = num_buckets if distance > 0 else 0
    n = abs(distance)
  else:
    n = max(-distance, 0)
  exact = num_buckets // 2
  if n < exact:
    return offset + n
  growth = math.log(n / exact) / math.log(max_distance / exact)
  # A float64 logarithm may fall short of a border that float32 reaches.
  place = exact + math.floor(growth * (num_buckets - exact) + 1e-6)
  return offset + min(place, num_buckets - 1)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("sizes", [(32, 128), (8, 16)])
def test_relative_buckets(bidirectional, sizes):
  distances = np.arange(-300, 301)
  found = biases.relative_buckets(distances, bidirectional, *sizes)
  expected = [bucket(int(d), bidirectional, *sizes) for d in distances]
  np.testing.assert_array_equal(found, expected)
  # No key after the query is at distance 0: that bucket stays empty.
  empty = {sizes[0] // 2} if bidirectional else set()
  assert set(found) == set(range(sizes[0])) - empty


@pytest.mark.parametrize("bidirectional", [True, False])
def test_bias_is_taken_at_each_querys_own_position(bidirectional):
  module = biases.RelativePositionBiases(2, bidirectional, 8, 16)
  positions = jnp.array([[0, 1, 2], [5, 6, 7], [40, 41, 3]])
  variables = module.init(jax.random.key(0), positions, 12)
  bias = module.apply(variables, positions, 12)
  table = np.asarray(variables["params"]["rel_embedding"])
  for row, query, key in np.ndindex(3, 3, 12):
    distance = key - int(positions[row, query])
    place = bucket(distance, bidirectional, 8, 16)
    np.testing.assert_array_equal(bias[row, :, query, key], table[:, place])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_masked_key_has_weight_zero_and_all_masked_is_uniform(dtype):
  bias = biases.mask_to_bias(jnp.array([[True, False], [False, False]]), dtype)
  ones = jnp.ones((1, 2, 1, 4), dtype)
  value = jnp.stack([ones[:, 0], 1e4 * ones[:, 1]], axis=2)
  y = layers.dot_product_attention(
      ones, jnp.moveaxis(ones, 1, 3), value, bias[None, None]
  )
  np.testing.assert_array_equal(y[0, 0], 1.0)
  np.testing.assert_allclose(y[0, 1].astype("float32"), 5000.5, rtol=2**-7)

import numpy as np
import pytest
from jax import numpy as jnp

from spec_t5x import attention, cache


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("axis", [-1, -2])
def test_write_block_overwrites_each_row_at_its_index(batch, axis):
  rng = np.random.default_rng(0)
  length, size = 9, 4
  shape = [batch, 2, 5, 5]
  shape[axis] = length
  buffer = rng.normal(size=shape).astype("float32")
  shape[axis] = size
  block = rng.normal(size=shape).astype("float32")
  index = np.array([5, 0, 2])[:batch]  # the first one reaches the edge
  written = attention.write_block(
      jnp.asarray(buffer), jnp.asarray(block), jnp.asarray(index), axis
  )
  expected = np.moveaxis(buffer.copy(), axis, 1)
  for row, at in enumerate(index):
    expected[row, at : at + size] = np.moveaxis(block, axis, 1)[row]
  np.testing.assert_array_equal(written, np.moveaxis(expected, 1, axis))


def test_write_block_keeps_the_buffers_dtype():
  buffer = jnp.zeros((2, 1, 4, 3), "bfloat16")
  block = jnp.ones((2, 1, 1, 3))
  index = jnp.array([0, 3])
  written = attention.write_block(buffer, block, index, -2)
  assert written.dtype == jnp.bfloat16
  np.testing.assert_array_equal(
      written[:, 0, :, 0], [[1, 0, 0, 0], [0, 0, 0, 1]]
  )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_init_cache(dtype):
  buffers = cache.init_cache(3, 2, 7, num_heads=4, head_dim=5, dtype=dtype)
  assert len(buffers) == 3
  for buffer in buffers:
    assert buffer.keys.shape == (2, 4, 5, 7)
    assert buffer.values.shape == (2, 4, 7, 5)
    assert buffer.length == 7
    assert buffer.keys.dtype == buffer.values.dtype == dtype

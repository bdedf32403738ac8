import jax
import numpy as np
import pytest
from jax import numpy as jnp

from spec_t5x import biases, layers


def test_layer_norm_has_no_mean_and_works_in_float32():
  rng = np.random.default_rng(0)
  x = jnp.asarray(rng.normal(size=(3, 8)) * 1e3 + 50)
  module = layers.LayerNorm(dtype="bfloat16")
  variables = module.init(jax.random.key(0), x)
  y = module.apply(variables, x)
  assert y.dtype == jnp.bfloat16
  expected = x / np.sqrt((x**2).mean(axis=-1, keepdims=True))
  np.testing.assert_allclose(y.astype("float32"), expected, rtol=2**-7)


@pytest.mark.parametrize(
    "rows", [(2, 3), *((1, count) for count in range(1, 10)), (1, 97), (6,)]
)
def test_projection_by_a_transposed_kernel(rows):
  rng = np.random.default_rng(0)
  x = rng.normal(size=(*rows, 5)).astype("float32")
  kernel = rng.normal(size=(5, 7)).astype("float32")
  expected = x @ kernel
  for transposed in (False, True):
    kernel_given = kernel.T if transposed else kernel
    y = layers.project(jnp.asarray(x), jnp.asarray(kernel_given), transposed)
    assert y.shape == expected.shape
    np.testing.assert_allclose(y, expected, atol=1e-5)


def test_only_the_rows_of_one_text_are_padded():
  def pads(*rows):
    x = jnp.ones((*rows, 5))
    text = jax.jit(lambda x: layers.project(x, jnp.ones((7, 5)), True))
    return "stablehlo.pad" in text.lower(x).as_text()

  assert pads(1, 6)
  # Over several devices padding would be an exchange.
  assert not pads(6, 1)
  assert not pads(2, 3)
  assert not pads(1, 1)


def test_attention_is_a_softmax_without_scaling():
  rng = np.random.default_rng(0)
  query = rng.normal(size=(1, 2, 1, 4)).astype("float32")
  key = rng.normal(size=(1, 3, 1, 4)).astype("float32")
  value = rng.normal(size=(1, 3, 1, 4)).astype("float32")
  bias = np.array([[[[0.0, 1.0, biases.MASKED], [0.0, 0.0, 0.0]]]], "float32")
  y = layers.dot_product_attention(
      *map(
          jnp.asarray,
          (query, np.moveaxis(key, 1, 3), np.moveaxis(value, 1, 2), bias),
      )
  )
  weights = np.exp(query[0, :, 0] @ key[0, :, 0].T + bias[0, 0])
  weights /= weights.sum(axis=-1, keepdims=True)
  np.testing.assert_allclose(y[0, :, 0], weights @ value[0, :, 0], atol=1e-6)


@pytest.mark.parametrize(
    ("activations", "expected"),
    [
        (("relu",), [2.0, 0.0]),
        (("relu", "linear"), [4.0, 0.0]),
        (("silu", "linear"), [4 / (1 + np.exp(-2)), 4 / (1 + np.exp(2))]),
    ],
)
def test_mlp(activations, expected):
  """Identity kernels: the activations of x, multiplied."""
  module = layers.Mlp(2, activations)
  x = jnp.array([[[2.0, -2.0]]])
  params = module.init(jax.random.key(0), x)["params"]
  params = jax.tree.map(lambda kernel: jnp.eye(2), params)
  y = module.apply({"params": params}, x)
  np.testing.assert_allclose(y[0, 0], expected, rtol=1e-6)


def test_embedding_attends_in_float32():
  module = layers.Embed(5, 3, dtype="bfloat16")
  variables = module.init(jax.random.key(0), jnp.zeros((1, 1), "int32"))
  table = variables["params"]["embedding"]
  logits = module.apply(variables, table[None, :2], method="attend")
  assert logits.dtype == jnp.float32
  np.testing.assert_allclose(logits[0], table[:2] @ table.T, rtol=1e-5)
  assert module.apply(variables, jnp.array([[4]])).dtype == jnp.bfloat16

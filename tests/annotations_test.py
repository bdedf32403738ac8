"""Tests that annotated shapes are checked while tests run (pyproject.toml)."""

import jax.numpy as jnp
import jaxtyping
import pytest

from spec_t5x import layers, texts


def test_shapes_that_fit_pass():
  layers.project(jnp.ones((2, 3)), jnp.ones((3, 4)), False)
  texts.read_block(jnp.ones((2, 8), "int32"), jnp.array([0, 3]), 4)


@pytest.mark.parametrize("kernel", [(3,), (3, 4, 5)])
def test_another_rank_is_an_error(kernel):
  with pytest.raises(jaxtyping.TypeCheckError, match="kernel"):
    layers.project(jnp.ones((2, 3)), jnp.ones(kernel), False)


def test_axes_of_one_name_are_of_one_length():
  with pytest.raises(jaxtyping.TypeCheckError, match="index"):
    texts.read_block(jnp.ones((2, 8), "int32"), jnp.array([0, 3, 1]), 4)


def test_another_dtype_is_an_error():
  with pytest.raises(jaxtyping.TypeCheckError, match="index"):
    texts.read_block(jnp.ones((2, 8), "int32"), jnp.array([0.0, 3.0]), 4)

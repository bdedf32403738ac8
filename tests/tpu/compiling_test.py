"""Tests of compiling the loop without devices."""

import dataclasses

import jax
import pytest

from spec_t5x.config import T5Config
from spec_t5x.tpu import chips, compiling

TARGET = T5Config(256, 64, 4, 16, 128, 1, 1, dtype="bfloat16")
DRAFT = dataclasses.replace(TARGET, emb_dim=32, num_heads=2)
LOOP = compiling.Loop(
    TARGET, DRAFT, gamma=3, inputs=8, targets=6, temperature=1
)

needs_compiler = pytest.mark.skipif(
    chips.compiler_version() is None,
    reason="the TPU compiler, package libtpu, is not installed",
)


def test_inputs_are_shapes_in_the_models_dtype():
  lowered = compiling.lower(LOOP, jax.devices()[:1])
  (weights, ids, rows), _ = lowered.args_info
  kinds = {param.dtype.name for param in jax.tree.leaves(weights)}
  assert kinds == {"bfloat16"}
  assert ids.shape == (1, 8)
  assert rows.limit.shape == (1,)


@pytest.mark.parametrize("name", ["gamma", "inputs", "targets"])
def test_numbers_below_1(name):
  with pytest.raises(ValueError, match=f"`{name}` must be at least 1. Got 0."):
    dataclasses.replace(LOOP, **{name: 0})


@pytest.mark.parametrize("name", ["target", "draft"])
def test_decoder_only(name):
  model = dataclasses.replace(TARGET, num_encoder_layers=0)
  with pytest.raises(ValueError, match=f"`{name}` must have an encoder."):
    dataclasses.replace(LOOP, **{name: model})


@needs_compiler
def test_one_chip_needs_no_collectives():
  facts = compiling.compile_loop(LOOP, chips.devices("v5e-1"))
  assert facts["iteration"]["collectives"] == {}
  # Everything is held once, in the dtype given.
  sizes = [param.size for param in _params(TARGET) + _params(DRAFT)]
  assert facts["argument_bytes"] >= 2 * sum(sizes)


@needs_compiler
def test_an_iteration_on_several_chips_gathers_the_logits_once():
  """Three sums a layer and one for the embedding; none by the draft."""
  facts = compiling.compile_loop(LOOP, chips.devices("v5e-4"))
  collectives = facts["iteration"]["collectives"]
  assert collectives == {"all-reduce": 4, "all-gather": 1}


def _params(config):
  return jax.tree.leaves(compiling.abstract_params(config))

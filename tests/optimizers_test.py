"""Tests of the schedule and of updates that scale with the parameters."""

import jax
import numpy as np
import optax
import pytest

from spec_t5x import optimizers
from spec_t5x.optimizers import Schedule


@pytest.mark.parametrize(
    ("step", "rate"),
    [(0, 0.0), (5, 0.1), (10, 0.2), (25, 0.2), (30, 0.2), (35, 0.1), (40, 0.0)],
)
def test_schedule(step, rate):
  schedule = Schedule(0.2, warmup_steps=10, decay_start=30, num_steps=40)
  np.testing.assert_allclose(schedule(step), rate, rtol=1e-6)


def test_schedule_of_one_phase_is_constant():
  schedule = Schedule(0.2, warmup_steps=0, decay_start=40, num_steps=40)
  np.testing.assert_allclose([schedule(1), schedule(40)], 0.2, rtol=1e-6)


@pytest.mark.parametrize("phases", [(20, 10, 30), (10, 40, 30), (-1, 10, 30)])
def test_phases_out_of_order(phases):
  with pytest.raises(
      ValueError, match="`warmup_steps` <= `decay_start` <= `num_steps` must"
  ):
    Schedule(0.1, *phases)


def test_unknown_optimizer():
  with pytest.raises(
      ValueError,
      match=(
          r"`optimizer` must be one of \('adafactor', 'adamw'\). Got 'sgd'."
      ),
  ):
    optimizers.make_optimizer("sgd", Schedule())


def updates_of(name, params, gradients, rate=0.1, weight_decay=0.0):
  optimizer = optimizers.make_optimizer(name, lambda step: rate, weight_decay)
  state = optimizer.init(params)
  return jax.jit(optimizer.update)(gradients, state, params)[0]


@pytest.fixture
def tree():
  """(parameters, gradients), the gradients of norm far above 1."""
  rng = np.random.default_rng(0)
  draw = lambda: {"w": rng.normal(0, 3, (4, 5)).astype("float32")}
  return draw(), draw()


@pytest.mark.parametrize("name", optimizers.OPTIMIZERS)
def test_updates_scale_with_the_parameters(name, tree):
  params, gradients = tree
  updates = updates_of(name, params, gradients)["w"]
  larger = {"w": 7 * params["w"]}
  np.testing.assert_allclose(
      updates_of(name, larger, gradients)["w"], 7 * updates, rtol=1e-4
  )
  # At the first step every entry moves by the rate times the root mean square.
  size = 0.1 * np.sqrt(np.square(params["w"]).mean())
  np.testing.assert_allclose(
      updates, -size * np.sign(gradients["w"]), rtol=1e-3
  )


@pytest.mark.parametrize("name", optimizers.OPTIMIZERS)
def test_weight_decay_is_a_fraction_of_the_rate(name, tree):
  params, gradients = tree
  plain = updates_of(name, params, gradients)["w"]
  decayed = updates_of(name, params, gradients, weight_decay=0.5)["w"]
  np.testing.assert_allclose(
      decayed - plain, -0.1 * 0.5 * params["w"], rtol=1e-4, atol=1e-6
  )


def test_adamw_clips_the_global_norm(tree):
  params, gradients = tree
  optimizer = optimizers.make_optimizer("adamw", lambda step: 0.1)
  _, state = optimizer.update(gradients, optimizer.init(params), params)
  mean = optax.tree_utils.tree_get(state, "mu")["w"]
  norm = np.sqrt(np.square(gradients["w"]).sum())
  assert norm > 5
  np.testing.assert_allclose(mean, 0.1 * gradients["w"] / norm, rtol=1e-4)

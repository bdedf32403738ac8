"""Tests of training: the loss, the steps, and resuming bit for bit."""

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy_training
from toy_training import CONFIG, make_data, make_trainer

from spec_t5x import network, optimizers, partitioning, train
from spec_t5x.config import T5Config
from spec_t5x.train_state import StateStore, TrainState

pytestmark = pytest.mark.usefixtures("quick_compilation")


def params_of(trainer):
  return jax.device_get(trainer.state.params)


def assert_same(first, second):
  jax.tree.map(np.testing.assert_array_equal, first, second)


def rows_of(directory):
  """The curve without times."""
  rows = map(json.loads, (directory / "log.jsonl").read_text().splitlines())
  return [(r["step"], r["loss"], r["held_out_loss"]) for r in rows]


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
  """Six steps without a stop: parameters, held-out losses, directory."""
  directory = tmp_path_factory.mktemp("straight")
  trainer = make_trainer()
  assert train.fit(
      trainer, make_data(), 6, directory, eval_every=1, save_every=3
  )
  return params_of(trainer), directory


def test_loss_falls_on_a_toy(straight):
  losses = [loss for _, loss, _ in rows_of(straight[1])]
  trainer = make_trainer()
  batch = next(make_data().train_batches(0))
  for _ in range(200):
    trainer.step(batch)
  # From ln 24 = 3.2 towards 0; a model that learns nothing stays.
  assert losses[0] > 2.5
  assert trainer.evaluate([batch]) < 1.0


def test_padding_rows_change_nothing():
  batch = next(make_data().train_batches(0))
  wider = {n: np.pad(x, ((0, 3), (0, 0))) for n, x in batch.items()}
  trainer = make_trainer()
  np.testing.assert_allclose(
      trainer.evaluate([batch]), trainer.evaluate([wider]), rtol=1e-6
  )


@pytest.mark.slow
def test_remat_changes_no_gradient():
  batch = next(make_data().train_batches(0))
  trainers = [make_trainer(), make_trainer(remat=True)]
  for trainer in trainers:
    trainer.step(batch)
  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5),
      *map(params_of, trainers),
  )


def test_resumed_run_is_the_same_bit_for_bit(straight, tmp_path):
  for num_steps in (3, 6):
    trainer = make_trainer()
    assert train.fit(
        trainer, make_data(), num_steps, tmp_path, eval_every=1, save_every=3
    )
  assert_same(params_of(trainer), straight[0])
  assert rows_of(tmp_path) == rows_of(straight[1])


def test_run_on_a_mesh_of_one_resumes_bit_for_bit(straight, tmp_path):
  mesh = partitioning.make_mesh(1, 1, jax.devices()[:1])
  for num_steps in (3, 6):
    trainer = make_trainer(mesh=mesh)
    train.fit(trainer, make_data(), num_steps, tmp_path, save_every=3)
  assert (tmp_path / "state" / "6").is_dir()
  assert not (tmp_path / "state" / "3").exists()
  assert_same(params_of(trainer), straight[0])


def test_another_order_is_another_run(straight, tmp_path):
  trainer = make_trainer()
  data = dataclasses.replace(make_data(), seed=1)
  train.fit(trainer, data, 6, tmp_path, eval_every=6)
  with pytest.raises(AssertionError, match="Arrays are not equal"):
    assert_same(params_of(trainer), straight[0])


def test_killed_run_resumes_bit_for_bit(straight, tmp_path):
  command = [sys.executable, toy_training.__file__, tmp_path]
  root = pathlib.Path(toy_training.__file__).parents[1]
  env = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(root)}
  # Told to wait behind step 4, of which nothing is saved.
  with subprocess.Popen([*command, "4"], env=env) as process:
    deadline = time.monotonic() + 300
    while not (tmp_path / "waiting").exists():
      assert process.poll() is None
      assert time.monotonic() < deadline
      time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
  assert process.returncode == -signal.SIGKILL
  trainer = make_trainer()
  train.fit(trainer, make_data(), 6, tmp_path, eval_every=1, save_every=3)
  assert_same(params_of(trainer), straight[0])
  assert rows_of(tmp_path) == rows_of(straight[1])


def test_time_limit_stops_with_a_checkpoint(straight, tmp_path):
  trainer = make_trainer()
  data, settings = make_data(), dict(eval_every=1, save_every=3)
  assert not train.fit(trainer, data, 6, tmp_path, max_seconds=1e-9, **settings)
  assert trainer.state.step == 1
  trainer = make_trainer()
  assert train.fit(trainer, data, 6, tmp_path, max_seconds=600, **settings)
  assert_same(params_of(trainer), straight[0])


def test_quality_is_asked_for_in_its_rows(tmp_path):
  trainer = make_trainer()
  steps = []

  def quality(trainer):
    steps.append(int(trainer.state.step))
    return {"bleu": 12.5}

  rows, losses = [], []
  train.fit(
      trainer,
      make_data(),
      3,
      tmp_path,
      eval_every=1,
      quality=quality,
      quality_every=2,
      on_row=rows.append,
      on_step=lambda step, loss: losses.append(loss),
  )
  assert steps == [2, 3]
  assert ["bleu" in row for row in rows] == [False, True, True]
  # One step behind.
  assert np.isnan(losses[0])
  assert np.isfinite(losses[1:]).all()


def test_state_that_is_not_finite_is_not_kept(tmp_path):
  trainer = make_trainer()
  train.fit(trainer, make_data(), 1, tmp_path)
  poison = jax.tree.map(lambda x: x * jnp.inf, trainer.state.params)
  trainer.step = lambda batch: _poisoned(trainer, poison)
  with pytest.raises(FloatingPointError, match="Step 2 made parameters not"):
    train.fit(trainer, make_data(), 9, tmp_path, save_every=1)
  assert StateStore(tmp_path).restore(make_trainer().state).step == 1


def _poisoned(trainer, params):
  trainer.state = trainer.state._replace(
      step=trainer.state.step + 1, params=params
  )
  return jnp.ones(()), jnp.ones((), "int32")


def test_loss_that_is_not_finite_stops_the_run(tmp_path):
  trainer = make_trainer()
  trainer.step = lambda batch: (jnp.inf, jnp.ones((), "int32"))
  with pytest.raises(FloatingPointError, match="The loss of step 1 is inf."):
    train.fit(trainer, make_data(), 9, tmp_path)


@pytest.mark.parametrize(
    "change",
    [{"mlp_dim": 8}, {"num_decoder_layers": 2}, {"optimizer": "adafactor"}],
)
def test_state_of_another_run(straight, change):
  optimizer = optimizers.make_optimizer(
      change.pop("optimizer", "adamw"), optimizers.Schedule()
  )

  def initial():
    params = train.init_params(dataclasses.replace(CONFIG, **change), 0)
    return TrainState(jnp.zeros((), "int32"), params, optimizer.init(params))

  with pytest.raises(
      ValueError, match="is not of this configuration and optimizer"
  ):
    StateStore(straight[1]).restore(jax.eval_shape(initial))


def test_decoder_only_models_train():
  config = T5Config(24, 8, 2, 4, 16, 0, 1)
  trainer = make_trainer(config=config)
  before = trainer.evaluate([next(make_data().train_batches(0))])
  for batch, _ in zip(make_data().train_batches(0), range(20), strict=False):
    trainer.step(batch)
  assert trainer.evaluate([next(make_data().train_batches(0))]) < before


def test_initial_parameters_are_float32_and_t5x_shaped():
  params = train.init_params(CONFIG, 0)
  assert {x.dtype for x in jax.tree.leaves(params)} == {jnp.dtype("float32")}
  embedding = params["token_embedder"]["embedding"]
  assert embedding.shape == (24, 8)
  # Four standard errors of the deviation of 192 normal numbers are 0.2.
  assert abs(embedding.std() - 1) < 0.2


def law_of(trainer, batch):
  names = ("encoder_input_tokens", "decoder_input_tokens")
  module = network.build(trainer.config)
  logits = module.apply(
      {"params": trainer.state.params},
      *(jnp.asarray(batch[name]) for name in names),
      jnp.asarray(batch["decoder_target_tokens"]),
  )
  return jax.nn.softmax(logits)


def test_a_teacher_is_imitated_and_not_the_tokens():
  teacher, batch = make_trainer(seed=1), next(make_data().train_batches(0))
  law = law_of(teacher, batch)
  pupil = train.Trainer(
      dataclasses.replace(CONFIG, dropout_rate=0.0),
      optimizers.make_optimizer("adamw", optimizers.Schedule(0.03, 0, 80, 80)),
      teacher=train.Teacher(teacher.config, params_of(teacher)),
  )
  weights = batch["decoder_target_tokens"] > 0

  def distance():
    q = law_of(pupil, batch)
    return float(
        (abs(law - q).sum(axis=-1) / 2 * weights).sum() / weights.sum()
    )

  far = distance()
  for _ in range(80):
    pupil.step(batch)
  assert distance() < 0.4 * far


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"vocab_size": 32}, "vocab_size"),
        ({"num_encoder_layers": 0}, "decoder_only"),
    ],
)
def test_a_teacher_of_another_kind_is_refused(change, name):
  config = dataclasses.replace(CONFIG, **change)
  with pytest.raises(ValueError, match=f"`teacher` must have .*`{name}`"):
    train.Trainer(
        CONFIG,
        optimizers.make_optimizer("adamw", optimizers.Schedule()),
        teacher=train.Teacher(config, {}),
    )

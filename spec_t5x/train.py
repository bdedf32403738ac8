"""Training of targets and drafts: teacher forcing, optax, exact resume."""

import os
import pathlib
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int

from spec_t5x import network, partitioning, processes
from spec_t5x.train_curve import Curve
from spec_t5x.train_data import Batch, Data
from spec_t5x.train_loss import imitation_loss, token_loss
from spec_t5x.train_state import StateStore, TrainState
from spec_t5x.types import Params


def init_params(
    config: network.T5Config, seed: int, mesh: Mesh | None = None
) -> Params:
  """Returns freshly initialised parameters, on a mesh if one is given.

  Raises:
    ValueError: the mesh does not divide the model.
  """
  tokens = jnp.ones((1, 2), "int32")
  inputs = (tokens,) * (2 if config.decoder_only else 3)
  init = lambda key: network.build(config).init(key, *inputs)["params"]
  if mesh is None:
    return jax.jit(init)(jax.random.key(seed))
  shardings = partitioning.param_shardings(config, mesh)
  with partitioning.on_mesh(mesh):
    return jax.jit(init, out_shardings=shardings)(jax.random.key(seed))


class Teacher(NamedTuple):
  """A model whose laws another one learns.

  Attributes:
    config: its configuration, not packed.
    params: its parameters.
  """

  config: network.T5Config
  params: Params


class Trainer:
  """One model in training, on one device or on a mesh.

  Attributes:
    config: the model's configuration, not packed.
    mesh: rows of a batch go over `data`, the model over `model`; or None.
    state: parameters and optimizer, replaced by every step.
  """

  def __init__(
      self,
      config: network.T5Config,
      optimizer: optax.GradientTransformation,
      seed: int = 0,
      params: Params = None,
      mesh: Mesh | None = None,
      remat: bool = False,
      teacher: Teacher | None = None,
  ):
    """Initialises the parameters, or takes `params`.

    Args:
      config: the model's configuration; the `dtype` of activations may be
        bfloat16, parameters are float32.
      optimizer: an optax transformation.
      seed: of the parameters and of dropout.
      params: to be trained further; they are used up.
      mesh: devices to train on; see `partitioning`.
      remat: keep the results of matrix products only for the backward pass
        and compute the rest again: less memory, more time.
      teacher: the model whose law is learnt at each token, see
        `imitation_loss`; None to learn the tokens.

    Raises:
      ValueError: the mesh does not divide the model, or the teacher is of
        another kind or vocabulary.
    """
    self.config, self.mesh = config, mesh
    self._teacher = _placed(teacher, config, mesh)
    self._optimizer = optimizer
    self._key = jax.random.key(seed)
    self._remat = remat
    if params is None:
      params = init_params(config, seed, mesh)
    if mesh is not None:
      params = partitioning.place(config, params, mesh)
    shardings = self._state_shardings(params)
    init = lambda params: TrainState(
        jnp.zeros((), "int32"), params, optimizer.init(params)
    )
    self.state = jax.jit(init, donate_argnums=0, out_shardings=shardings)(
        params
    )
    whole = None if mesh is None else partitioning.replicated(mesh)
    self._update = jax.jit(
        self._update_fn, donate_argnums=0, out_shardings=(shardings, whole)
    )
    self._evaluate = jax.jit(self._evaluate_fn, out_shardings=whole)
    self._is_finite = jax.jit(_is_finite, out_shardings=whole)

  def _state_shardings(self, params: Params) -> TrainState | None:
    """Moments lie where their parameters do; what is smaller is replicated."""
    if self.mesh is None:
      return None
    whole = partitioning.replicated(self.mesh)
    opt_state = optax.tree_utils.tree_map_params(
        self._optimizer,
        lambda x, param: param.sharding if x.shape == param.shape else whole,
        jax.eval_shape(self._optimizer.init, params),
        params,
        transform_non_params=lambda _: whole,
    )
    shardings = partitioning.param_shardings(self.config, self.mesh)
    return TrainState(whole, shardings, opt_state)

  def _update_fn(self, state: TrainState, batch: Batch, teacher: Params):
    key = jax.random.fold_in(self._key, state.step)
    use_dropout = self.config.dropout_rate > 0
    targets = batch["decoder_target_tokens"]

    def mean_loss(params):
      logits = _logits(self.config, params, batch, key if use_dropout else None)
      loss, nats, count = token_loss(logits, targets)
      if self._teacher:
        law = jax.nn.softmax(_logits(self._teacher.config, teacher, batch))
        loss = imitation_loss(logits, law, targets)
      return loss / count, (nats, count)

    if self._remat:
      policy = jax.checkpoint_policies.dots_with_no_batch_dims_saveable
      mean_loss = jax.checkpoint(mean_loss, policy=policy)
    gradients, metrics = jax.grad(mean_loss, has_aux=True)(state.params)
    updates, opt_state = self._optimizer.update(
        gradients, state.opt_state, state.params
    )
    params = optax.apply_updates(state.params, updates)
    return TrainState(state.step + 1, params, opt_state), metrics

  def _evaluate_fn(self, params, batch: Batch):
    logits = _logits(self.config, params, batch)
    return token_loss(logits, batch["decoder_target_tokens"])[1:]

  def _place(self, batch: Batch) -> Batch:
    """Moves a batch onto the mesh, with rows of padding to be divisible."""
    if self.mesh is None:
      return batch
    parts = self.mesh.shape["data"]
    fill = lambda x: np.pad(x, ((0, -len(x) % parts), (0, 0)))
    sharding = partitioning.batch_sharding(self.mesh)
    return partitioning.put(jax.tree.map(fill, batch), sharding)

  def step(self, batch: Batch) -> tuple[Float[Array, ""], Int[Array, ""]]:
    """Takes one optimizer step; returns summed nats and the token count."""
    with partitioning.on_mesh(self.mesh):
      self.state, metrics = self._update(
          self.state,
          self._place(batch),
          self._teacher and self._teacher.params,
      )
    return metrics

  def evaluate(self, batches: Iterable[Batch]) -> float:
    """Returns the mean cross-entropy per token of held-out batches, nats."""
    with partitioning.on_mesh(self.mesh):
      sums = [
          self._evaluate(self.state.params, self._place(batch))
          for batch in batches
      ]
    nats, counts = zip(*sums, strict=True)
    return float(sum(nats) / sum(counts))

  def is_finite(self) -> bool:
    """Whether the state is worth keeping."""
    return bool(self._is_finite(self.state))


def _logits(
    config: network.T5Config, params: Params, batch: Batch, key=None
) -> Float[Array, "batch length vocab"]:
  """Teacher-forced logits; with dropout if there is a key."""
  names = ("decoder_input_tokens", "decoder_target_tokens")
  if not config.decoder_only:
    names = ("encoder_input_tokens", *names)
  return network.build(config).apply(
      {"params": params},
      *(batch[name] for name in names),
      enable_dropout=key is not None,
      rngs=None if key is None else {"dropout": key},
  )


def _placed(
    teacher: Teacher | None, config: network.T5Config, mesh: Mesh | None
) -> Teacher | None:
  """Checks a teacher, and puts it on the mesh if there is one."""
  if teacher is None:
    return None
  for name in ("vocab_size", "decoder_only"):
    theirs, ours = getattr(teacher.config, name), getattr(config, name)
    if theirs != ours:
      raise ValueError(
          f"`teacher` must have the model's `{name}`, {ours}. Got {theirs}."
      )
  if mesh is None:
    return teacher
  params = partitioning.place(teacher.config, teacher.params, mesh)
  return teacher._replace(params=params)


def _is_finite(state: TrainState) -> Bool[Array, ""]:
  leaves = [jnp.isfinite(x).all() for x in jax.tree.leaves(state)]
  return jnp.stack(leaves).all()


def fit(
    trainer: Trainer,
    data: Data,
    num_steps: int,
    directory: str | os.PathLike[str],
    *,
    eval_every: int = 500,
    save_every: int = 250,
    max_seconds: float | None = None,
    quality: Callable[[Trainer], dict[str, float]] | None = None,
    quality_every: int = 5000,
    on_step: Callable[[int, float], None] = lambda step, loss: None,
    on_row: Callable[[dict[str, Any]], None] = lambda row: None,
) -> bool:
  """Trains to `num_steps`, resuming from `directory` if a run stopped there.

  A resumed run sees the batches, and draws the dropout masks, that an
  uninterrupted one would have: its parameters are the same bit for bit.

  Args:
    trainer: the model, freshly made.
    data: training and held-out batches.
    num_steps: optimizer steps in all.
    directory: holds the newest state and the curve, `log.jsonl`.
    eval_every: steps between rows of the curve.
    save_every: steps between checkpoints.
    max_seconds: stop, with a checkpoint, when this call has taken as long.
    quality: further figures, such as `train_quality.Quality`.
    quality_every: steps between rows with them, a multiple of `eval_every`; the
      last row has them, too.
    on_step: called after every step with the training loss of the step
      before, nats per token.
    on_row: called with every row of the curve.

  Returns:
    Whether all steps are taken; False if time ran out.

  Raises:
    FloatingPointError: a loss or parameter is not finite; the checkpoint is of
      before.
    ValueError: the checkpoint is of another configuration or optimizer.
  """
  started = time.monotonic()
  directory = pathlib.Path(directory)
  directory.mkdir(parents=True, exist_ok=True)
  store = StateStore(directory, trainer.mesh)
  trainer.state = store.restore(trainer.state) or trainer.state
  step = int(trainer.state.step)
  curve = Curve(directory / "log.jsonl", step)
  batches = data.train_batches(step)
  in_time = True
  while step < num_steps and in_time:
    curve.add(*trainer.step(next(batches)))
    step += 1
    on_step(step, curve.last_loss)
    in_time = not max_seconds or processes.on_first(
        lambda: time.monotonic() - started < max_seconds
    )
    is_last = step == num_steps or not in_time
    if step % eval_every == 0 or is_last:
      curve.flush()
      held_out = trainer.evaluate(data.validation_batches())
      has_quality = quality and (step % quality_every == 0 or is_last)
      figures = quality(trainer) if has_quality else {}
      on_row(curve.write(step, held_out, figures))
    if step % save_every == 0 or is_last:
      curve.flush()
      if not trainer.is_finite():
        raise FloatingPointError(f"Step {step} made parameters not finite.")
      store.save(trainer.state)
  return step >= num_steps

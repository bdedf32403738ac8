"""Training of targets and drafts: teacher forcing, optax, exact resume."""

import dataclasses
import json
import os
import pathlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import flax.serialization
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from spec_t5x import batching, network

Batch = dict[str, Int[Array, "batch length"]]


@dataclasses.dataclass(frozen=True)
class Schedule:
  """Learning rate: linear warm-up, constant, linear decay to zero.

  Attributes:
    peak: the constant part's rate.
    warmup_steps: steps from 0 to `peak`.
    decay_start: first step of the decay.
    num_steps: the step at which the rate is zero and training ends.
  """

  peak: float = 1e-2
  warmup_steps: int = 200
  decay_start: int = 8_000
  num_steps: int = 10_000

  def __post_init__(self):
    """Checks the order of the phases."""
    phases = (0, self.warmup_steps, self.decay_start, self.num_steps)
    if sorted(phases) != list(phases):
      raise ValueError(
          "`warmup_steps` <= `decay_start` <= `num_steps` must hold."
          f" Got {phases[1:]}."
      )

  def __call__(self, step: Int[Array, ""]) -> Float[Array, ""]:
    """Rate at a step."""
    decay_steps = max(1, self.num_steps - self.decay_start)
    return optax.join_schedules(
        [
            optax.linear_schedule(0.0, self.peak, max(1, self.warmup_steps)),
            optax.linear_schedule(self.peak, 0.0, decay_steps),
        ],
        [self.decay_start],
    )(step)


def make_optimizer(
    name: str, schedule: Callable[[Array], Array], weight_decay: float = 0.0
) -> optax.GradientTransformation:
  """Returns an optimizer whose updates scale with each parameter's size.

  T5's embeddings start at standard deviation 1 and its kernels at a few
  hundredths, so rates are relative, in Adam too.

  Args:
    name: 'adafactor' (as T5) or 'adamw'.
    schedule: step to relative learning rate.
    weight_decay: decoupled decay, a fraction of the learning rate.

  Returns:
    The transformation, with gradients clipped to global norm 1.

  Raises:
    ValueError: the name is neither of the two.
  """
  if name == "adafactor":
    return optax.adafactor(
        schedule, weight_decay_rate=weight_decay or None, decay_rate=0.8
    )
  if name != "adamw":
    raise ValueError(
        f"`optimizer` must be 'adafactor' or 'adamw'. Got {name!r}."
    )
  return optax.chain(
      optax.clip_by_global_norm(1.0),
      optax.scale_by_adam(b1=0.9, b2=0.98),
      optax.scale_by_param_block_rms(),
      optax.add_decayed_weights(weight_decay),
      optax.scale_by_learning_rate(schedule),
  )


def token_loss(
    logits: Float[Array, "batch length vocab"],
    targets: Int[Array, "batch length"],
    z_loss: float = 1e-4,
) -> tuple[Float[Array, ""], Float[Array, ""], Int[Array, ""]]:
  """Sums cross-entropy over the tokens that are not padding.

  Returns:
    The training loss (cross-entropy plus T5's z-loss) and the plain
    cross-entropy, both in nats summed over tokens, and the token count.
  """
  weights = targets > 0
  log_z = jax.nn.logsumexp(logits, axis=-1)
  chosen = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
  nats = jnp.sum((log_z - chosen) * weights)
  penalty = z_loss * jnp.sum(jnp.square(log_z) * weights)
  return nats + penalty, nats, jnp.sum(weights)


class TrainState(NamedTuple):
  """All that a resumed run needs, apart from the data.

  Attributes:
    step: optimizer steps taken.
    params: T5X parameter tree, float32.
    opt_state: state of the optax transformation.
  """

  step: Int[Array, ""]
  params: Any
  opt_state: Any


class Trainer:
  """One model in training.

  Attributes:
    config: the model's configuration.
    state: parameters and optimizer, replaced by every step.
  """

  def __init__(
      self,
      config: network.T5Config,
      optimizer: optax.GradientTransformation,
      seed: int = 0,
      params: Any = None,
  ):
    """Initialises the parameters, or takes `params` as they are."""
    self.config = config
    self._module = network.build(config)
    self._optimizer = optimizer
    self._key = jax.random.key(seed)
    if params is None:
      params = init_params(config, seed)
    self.state = TrainState(
        jnp.zeros((), "int32"), params, optimizer.init(params)
    )
    self._update = jax.jit(self._update_fn, donate_argnums=0)
    self._evaluate = jax.jit(self._evaluate_fn)

  def _logits(self, params, batch: Batch, key=None):
    names = ("decoder_input_tokens", "decoder_target_tokens")
    if not self.config.decoder_only:
      names = ("encoder_input_tokens", *names)
    return self._module.apply(
        {"params": params},
        *(batch[name] for name in names),
        enable_dropout=key is not None,
        rngs=None if key is None else {"dropout": key},
    )

  def _update_fn(self, state: TrainState, batch: Batch):
    key = jax.random.fold_in(self._key, state.step)
    use_dropout = self.config.dropout_rate > 0

    def mean_loss(params):
      logits = self._logits(params, batch, key if use_dropout else None)
      loss, nats, count = token_loss(logits, batch["decoder_target_tokens"])
      return loss / count, (nats, count)

    gradients, metrics = jax.grad(mean_loss, has_aux=True)(state.params)
    updates, opt_state = self._optimizer.update(
        gradients, state.opt_state, state.params
    )
    params = optax.apply_updates(state.params, updates)
    return TrainState(state.step + 1, params, opt_state), metrics

  def _evaluate_fn(self, params, batch: Batch):
    logits = self._logits(params, batch)
    return token_loss(logits, batch["decoder_target_tokens"])[1:]

  def step(self, batch: Batch) -> tuple[Float[Array, ""], Int[Array, ""]]:
    """Takes one optimizer step; returns summed nats and the token count."""
    self.state, metrics = self._update(self.state, batch)
    return metrics

  def evaluate(self, batches: Iterator[Batch]) -> float:
    """Returns the mean cross-entropy per token of held-out batches, nats."""
    sums = [self._evaluate(self.state.params, batch) for batch in batches]
    nats, counts = zip(*sums, strict=True)
    return float(sum(nats) / sum(counts))

  def save(self, path: pathlib.Path) -> None:
    """Writes the state as one file, atomically."""
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(
        flax.serialization.to_bytes(jax.device_get(self.state))
    )
    os.replace(temporary, path)

  def restore(self, path: pathlib.Path) -> None:
    """Reads a state that `save` wrote, of the same configuration."""
    state = flax.serialization.from_bytes(self.state, path.read_bytes())
    self.state = jax.tree.map(jnp.asarray, state)


def init_params(config: network.T5Config, seed: int) -> Any:
  """Returns freshly initialised parameters."""
  tokens = jnp.ones((1, 2), "int32")
  inputs = (tokens,) * (2 if config.decoder_only else 3)
  init = jax.jit(network.build(config).init)
  return init(jax.random.key(seed), *inputs)["params"]


@dataclasses.dataclass(frozen=True)
class Examples:
  """Token ids to train on and to hold out, without EOS.

  Attributes:
    train: (source, target) pairs.
    validation: held-out pairs.
  """

  train: Sequence[batching.Example]
  validation: Sequence[batching.Example]


def fit(
    trainer: Trainer,
    examples: Examples,
    num_steps: int,
    directory: str | os.PathLike[str],
    *,
    tokens_per_batch: int = 2048,
    seed: int = 0,
    eval_every: int = 500,
    save_every: int = 250,
    report: Callable[[dict[str, Any]], None] = lambda row: None,
) -> None:
  """Trains to `num_steps`, resuming from `directory` if a run stopped there.

  A resumed run sees the batches, and draws the dropout masks, that an
  uninterrupted one would have.

  Args:
    trainer: the model, freshly made.
    examples: data, in a fixed order.
    num_steps: optimizer steps in all.
    directory: holds `state.msgpack` and the curve, `log.jsonl`.
    tokens_per_batch: positions in a batch, both sides, padding included.
    seed: of the data order.
    eval_every: steps between held-out losses.
    save_every: steps between checkpoints.
    report: called with every row of the curve.

  Raises:
    FloatingPointError: the loss is not finite.
  """
  directory = pathlib.Path(directory)
  directory.mkdir(parents=True, exist_ok=True)
  checkpoint = directory / "state.msgpack"
  if checkpoint.exists():
    trainer.restore(checkpoint)
  step = int(trainer.state.step)
  log = _Curve(directory / "log.jsonl", step, report)
  plan = batching.BatchPlan.make(examples.train, tokens_per_batch)
  while step < num_steps:
    epoch, start = divmod(step, plan.num_batches)
    for batch in batching.bucket_batches(
        examples.train, tokens_per_batch, seed=seed, epoch=epoch, start=start
    ):
      log.add(*trainer.step(batch))
      step += 1
      if step % eval_every == 0 or step == num_steps:
        held_out = batching.bucket_batches(examples.validation, 4096)
        log.write(step, epoch, trainer.evaluate(held_out))
      if step % save_every == 0 or step == num_steps:
        trainer.save(checkpoint)
      if step == num_steps:
        break


class _Curve:
  """The log of a run, one JSON object a line."""

  def __init__(self, path: pathlib.Path, step: int, report: Callable):
    self._path, self._report = path, report
    rows = path.read_text().splitlines() if path.exists() else []
    # Rows past the checkpoint will be written again.
    kept = [row for row in rows if json.loads(row)["step"] <= step]
    path.write_text("".join(row + "\n" for row in kept))
    self._seconds = json.loads(kept[-1])["seconds"] if kept else 0.0
    self._reset()

  def _reset(self):
    self._sums, self._started = [], time.monotonic()

  def add(self, nats, count):
    self._sums.append((nats, count))

  def write(self, step: int, epoch: int, held_out: float):
    nats, counts = zip(*self._sums, strict=True)
    tokens = int(sum(counts))
    loss = float(sum(nats)) / tokens
    if not jnp.isfinite(loss):
      raise FloatingPointError(f"The loss is {loss} before step {step}.")
    elapsed = time.monotonic() - self._started
    self._seconds += elapsed
    row = {
        "step": step,
        "epoch": epoch,
        "loss": round(loss, 4),
        "held_out_loss": round(held_out, 4),
        "target_tokens_per_second": round(tokens / elapsed),
        "seconds": round(self._seconds, 1),
    }
    with self._path.open("a") as file:
      file.write(json.dumps(row) + "\n")
    self._report(row)
    self._reset()

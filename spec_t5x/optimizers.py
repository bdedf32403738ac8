"""Learning rates and optimizers whose updates scale with the parameters."""

import dataclasses
from collections.abc import Callable

import optax
from jaxtyping import Array, Float, Int

OPTIMIZERS = ("adafactor", "adamw")


@dataclasses.dataclass(frozen=True)
class Schedule:
  """Learning rate: linear warm-up, constant, linear decay to zero.

  A run may be continued under another schedule of its own steps, for example
  to decay a rate that was constant.

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
    name: 'adafactor' (as T5; its state is small) or 'adamw'.
    schedule: step to relative learning rate.
    weight_decay: decoupled decay, a fraction of the learning rate.

  Returns:
    The transformation. AdamW's gradients are clipped to global norm 1,
    Adafactor's updates to root mean square 1.

  Raises:
    ValueError: the name is neither of the two.
  """
  if name not in OPTIMIZERS:
    raise ValueError(f"`optimizer` must be one of {OPTIMIZERS}. Got {name!r}.")
  if name == "adafactor":
    # The decay that optax's own argument sets ignores the learning rate.
    return optax.chain(
        optax.adafactor(decay_rate=0.8),
        optax.add_decayed_weights(-weight_decay),
        optax.scale_by_learning_rate(schedule, flip_sign=False),
    )
  return optax.chain(
      optax.clip_by_global_norm(1.0),
      optax.scale_by_adam(b1=0.9, b2=0.98),
      optax.scale_by_param_block_rms(),
      optax.add_decayed_weights(weight_decay),
      optax.scale_by_learning_rate(schedule),
  )

"""Options of T5X's decode functions."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from spec_t5x import inputs, standardize
from spec_t5x.types import EOS_ID, LogitCallback, PRNGKey

# Options of T5X's samplers that have no counterpart here.
_UNSUPPORTED = {
    "state_callback_fn": "the state of the speculative loop is another",
    "logit_callback_fn": "use `logit_callback`, see `types.LogitCallback`",
}


@dataclasses.dataclass(frozen=True)
class DecodeOptions:
  """How to decode, by the names and defaults of T5X's `temperature_sample`.

  Attributes:
    gamma: tokens drafted in one iteration by a draft model; 0 decodes plainly.
    temperature: one, or one per input; up to 1e-4 is argmax.
    topk: keep the k most probable tokens; 0 = off, and 1, T5X's default, is
      argmax.
    topp: keep the nucleus of this mass; 0 = off. Not together with `topk`.
    max_decode_steps: most tokens after the prompt, one number or one per
      input; None decodes to the length of the targets feature.
    max_decode_steps_hard_limit: upper bound of `max_decode_steps`, or None.
    rescale_log_probs: scores under the law that was sampled (all 0 for
      argmax) or under the plain softmax.
    lenience: 1 is exact; see `decoding_types.Settings`.
    block_verification: see `decoding_types.Settings`.
    logit_callback: changes logits before sampling, or None.
    decode_rng: of all random numbers; None is `PRNGKey(0)`, as in T5X.
    eos_id: ends a text.
  """

  gamma: int = 5
  temperature: float | Float[Array, " batch"] = 1.0
  topk: int = 1
  topp: float = 0.0
  max_decode_steps: int | Int[Array, "..."] | None = None
  max_decode_steps_hard_limit: int | None = None
  rescale_log_probs: bool = True
  lenience: float = 1.0
  block_verification: bool = False
  logit_callback: LogitCallback | None = None
  decode_rng: PRNGKey | None = None
  eos_id: int = EOS_ID

  def __post_init__(self):
    """Checks what is not traced."""
    inputs.check_settings(
        self.gamma, self.lenience, self.block_verification, 1, 1
    )
    temperature = 0.0 if is_traced(self.temperature) else self.temperature
    standardize.validate_sampling(temperature, self.topk, self.topp)

  def updated(self, decoder_params: Mapping[str, Any]) -> "DecodeOptions":
    """Returns these options with T5X's `decoder_params` in their place.

    Raises:
      ValueError: an option is unknown, unsupported or out of range.
    """
    names = [field.name for field in dataclasses.fields(self)]
    for name in decoder_params:
      if name not in names:
        reason = _UNSUPPORTED.get(name, f"known are {', '.join(names)}")
        raise ValueError(f"The option `{name}` is not supported: {reason}.")
    return dataclasses.replace(self, **decoder_params)

  @property
  def greedy(self) -> bool:
    """Whether every row is known to decode by argmax."""
    if self.topk == 1:
      return True
    if is_traced(self.temperature):
      return False
    temperature = np.asarray(self.temperature)
    return bool((temperature <= standardize.GREEDY_TEMPERATURE).all())


def is_traced(value: Any) -> bool:
  """Whether a value is known only when the compiled program runs."""
  return isinstance(value, jax.core.Tracer)

"""What speculative decoding should gain (Leviathan et al. 2023, section 3).

Plain functions of floats or numpy arrays, which broadcast. `alpha` is the
acceptance rate, `gamma` the tokens drafted in one iteration, and
`cost_coefficient` c the time of one draft step over that of one target step.
`verify_ratio` v(gamma) is the time of a target call of gamma + 1 tokens over
that of one token. The paper takes it as 1; measured, it grows with gamma.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from spec_t5x.acceptance import check_lenience

Floats = np.ndarray | np.floating


def expected_tokens(alpha: ArrayLike, gamma: ArrayLike) -> Floats:
  """Returns the expected tokens per target call, equation 1.

  (1 - alpha^(gamma + 1)) / (1 - alpha), for acceptances that are independent
  and alike. gamma = inf is the bound 1 / (1 - alpha), which a gamma guessed
  right every time would reach.

  Args:
    alpha: in [0, 1].
    gamma: at least 0.

  Raises:
    ValueError: if an argument is out of range.
  """
  alpha = _checked("alpha", alpha, 0, 1)
  gamma = _checked("gamma", gamma, 0)
  # expm1 and log1p keep all digits where alpha is close to 1.
  with np.errstate(divide="ignore", invalid="ignore"):
    failure = -np.expm1((gamma + 1) * np.log1p(alpha - 1))
    tokens = failure / (1 - alpha)
  return np.where(alpha == 1, gamma + 1, tokens)[()]


def alpha_of_tokens(tokens: float, gamma: int) -> float:
  """Returns the alpha at which equation 1 gives so many tokens.

  Args:
    tokens: per target call, from 1 to gamma + 1.
    gamma: at least 1.

  Raises:
    ValueError: if an argument is out of range.
  """
  _checked("gamma", gamma, 1)
  _checked("tokens", tokens, 1, gamma + 1)
  low, high = 0.0, 1.0
  # Equation 1 rises with alpha; halving 60 times leaves nothing of a float.
  for _ in range(60):
    middle = (low + high) / 2
    if expected_tokens(middle, gamma) < tokens:
      low = middle
    else:
      high = middle
  return high


def expected_tokens_positionwise(acceptance: ArrayLike) -> float:
  """Returns the expected tokens per target call from rates by position.

  1 + a_1 + a_1 a_2 + ..., where a_i is the probability that token i of the
  block is accepted if those before it are. Unlike equation 1 it does not take
  the positions as alike.

  Args:
    acceptance: [gamma], each in [0, 1].

  Raises:
    ValueError: if an argument is out of range.
  """
  acceptance = _checked("acceptance", acceptance, 0, 1)
  return float(1 + np.cumprod(acceptance).sum())


def walltime_improvement(
    alpha: ArrayLike,
    gamma: ArrayLike,
    cost_coefficient: ArrayLike,
    verify_ratio: ArrayLike = 1.0,
) -> Floats:
  """Returns the expected speed over plain decoding, theorem 3.8.

  expected_tokens / (v + gamma c); the paper's form has v = 1.

  Args:
    alpha: in [0, 1].
    gamma: at least 0.
    cost_coefficient: c, at least 0.
    verify_ratio: v at this gamma, above 0.

  Raises:
    ValueError: if an argument is out of range.
  """
  cost = _checked("cost_coefficient", cost_coefficient, 0)
  verify = _checked("verify_ratio", verify_ratio, 0)
  if not verify.all():
    raise ValueError("`verify_ratio` must be above 0. Got 0.")
  return expected_tokens(alpha, gamma) / (verify + np.asarray(gamma) * cost)


def guaranteed_improvement(alpha: float, cost_coefficient: float) -> float:
  """Returns what the best gamma gains at least, corollary 3.9.

  (1 + alpha) / (1 + c), which gamma = 1 reaches, if alpha > c; else 1, plain
  decoding.

  Args:
    alpha: in [0, 1].
    cost_coefficient: c, at least 0.

  Raises:
    ValueError: if an argument is out of range.
  """
  return float(max(1.0, walltime_improvement(alpha, 1, cost_coefficient)))


def operations_growth(
    alpha: ArrayLike, gamma: ArrayLike, op_cost_ratio: ArrayLike
) -> Floats:
  """Returns the expected growth of arithmetic operations, theorem 3.11.

  Args:
    alpha: in [0, 1].
    gamma: at least 0, finite.
    op_cost_ratio: operations per token of the draft over those of the target
      (definition 3.10), at least 0.

  Raises:
    ValueError: if an argument is out of range.
  """
  ratio = _checked("op_cost_ratio", op_cost_ratio, 0)
  tokens = expected_tokens(alpha, gamma)
  gamma = np.asarray(gamma)
  return (gamma * ratio + gamma + 1) / tokens


def best_gamma(
    alpha: float,
    cost_coefficient: float,
    verify_ratio: Callable[[int], float] | None = None,
    max_gamma: int = 64,
) -> int:
  """Returns the gamma of the greatest walltime improvement, section 3.5.

  Args:
    alpha: in [0, 1].
    cost_coefficient: c, at least 0.
    verify_ratio: v; None for the paper's v = 1.
    max_gamma: the largest gamma considered.

  Returns:
    The smallest such gamma, 0 (plain decoding) if drafting does not pay.

  Raises:
    ValueError: if an argument is out of range.
  """
  gammas = np.arange(int(_checked("max_gamma", max_gamma, 0)) + 1)
  ratios = [verify_ratio(int(g)) if verify_ratio else 1.0 for g in gammas]
  speeds = walltime_improvement(alpha, gammas, cost_coefficient, ratios)
  return int(np.argmax(speeds))


def acceptance_rate(
    target_probs: ArrayLike, draft_probs: ArrayLike, lenience: float = 1.0
) -> Floats:
  """Returns beta = sum_x min(p(x) / l, q(x)), theorem 3.5 and A.5.

  Args:
    target_probs: p, [..., vocab].
    draft_probs: q, [..., vocab].
    lenience: l in (0, 1].

  Raises:
    ValueError: if an argument is out of range.
  """
  check_lenience(lenience)
  p = _checked("target_probs", target_probs, 0, 1)
  q = _checked("draft_probs", draft_probs, 0, 1)
  return np.minimum(p / lenience, q).sum(axis=-1)


def rejection_sampling_acceptance(
    target_probs: Sequence[float] | np.ndarray,
    draft_probs: Sequence[float] | np.ndarray,
) -> Floats:
  """Returns the acceptance of plain rejection sampling, A.2.

  min q(x) / p(x) over the x that the target can emit: never more than
  `acceptance_rate`.

  Args:
    target_probs: p, [..., vocab].
    draft_probs: q, [..., vocab].

  Raises:
    ValueError: if an argument is out of range.
  """
  p = _checked("target_probs", target_probs, 0, 1)
  q = _checked("draft_probs", draft_probs, 0, 1)
  ratio = np.where(p > 0, q, np.inf) / np.where(p > 0, p, 1.0)
  return np.min(ratio, axis=-1)


def _checked(
    name: str, value: ArrayLike, low: float, high: float = np.inf
) -> np.ndarray:
  array = np.asarray(value, np.float64)
  if not ((array >= low) & (array <= high)).all():
    allowed = f"at least {low}" if high == np.inf else f"in [{low}, {high}]"
    raise ValueError(f"`{name}` must be {allowed}. Got {value}.")
  return array

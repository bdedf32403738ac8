"""The test of drafted tokens: acceptance, overlap and residual of two laws.

Leviathan et al. 2023, sections 2.3 and 3.1, and A.5; of whole blocks, Sun et
al. 2024. In the bodies p is the target's law, q the draft's, l the lenience.
"""

from jax import lax
from jax import numpy as jnp
from jaxtyping import Array, Bool, Float32, Int


def accept_probs(
    target_probs: Float32[Array, "gamma vocab"],
    draft_probs: Float32[Array, "gamma vocab"] | None,
    draft_tokens: Int[Array, " gamma"],
    lenience: float = 1.0,
) -> Float32[Array, " gamma"]:
  """Returns min(1, p(x) / (l q(x))) of each drafted token; 0 where p(x) = 0.

  Args:
    target_probs: p at the drafted positions.
    draft_probs: q, or None for point masses on the tokens.
    draft_tokens: x.
    lenience: l.
  """
  p = at_tokens(target_probs, draft_tokens)
  if draft_probs is None:
    return jnp.minimum(p / lenience, 1.0)
  return clipped_ratio(p, lenience * at_tokens(draft_probs, draft_tokens))


def overlaps(
    target_probs: Float32[Array, "gamma vocab"],
    draft_probs: Float32[Array, "gamma vocab"] | None,
    draft_tokens: Int[Array, " gamma"],
    lenience: float = 1.0,
) -> Float32[Array, " gamma"]:
  """Returns sum(min(p / l, q)) of each position (theorem 3.5 and A.5).

  Args:
    target_probs: p at the drafted positions.
    draft_probs: q, or None for point masses on the tokens.
    draft_tokens: x.
    lenience: l.
  """
  if draft_probs is None:
    return accept_probs(target_probs, None, draft_tokens, lenience)
  common = jnp.minimum(target_probs / lenience, draft_probs).sum(axis=-1)
  return jnp.minimum(common, 1.0)


def first_rejection(passed: Bool[Array, " gamma"]) -> Int[Array, ""]:
  """Returns how many tests are passed before the first that is not."""
  return jnp.cumprod(passed.astype(jnp.int32)).sum()


def residual_probs(
    target_probs: Float32[Array, " vocab"],
    draft_probs: Float32[Array, " vocab"],
) -> Float32[Array, " vocab"]:
  """Returns norm(max(0, p - q)), or p where that has no mass.

  Without mass p equals q and nothing is rejected but by rounding; p is then
  the right law, and the quotient would be NaN.
  """
  excess = jnp.maximum(0.0, target_probs - draft_probs)
  mass = excess.sum()
  return jnp.where(mass > 0, clipped_ratio(excess, mass), target_probs)


def survival_probs(
    target_at: Float32[Array, " gamma"], draft_at: Float32[Array, " gamma"]
) -> Float32[Array, " gamma_plus_1"]:
  """Returns s_0 = 1, s_i = min(1, s_{i-1} p(x_i) / q(x_i)) (Sun et al. 2024).

  Args:
    target_at: p(x_i) of the drafted tokens.
    draft_at: q(x_i) of the same.
  """

  def extend(survival, token):
    p, q = token
    survival = clipped_ratio(survival * p, q)
    return survival, survival

  start = jnp.ones((), jnp.float32)
  return jnp.append(start, lax.scan(extend, start, (target_at, draft_at))[1])


def clipped_ratio(
    a: Float32[Array, "..."], b: Float32[Array, "..."], empty: float = 0.0
) -> Float32[Array, "..."]:
  """Returns min(1, a / b) for a, b >= 0: 1 if b = 0 < a, `empty` if both 0."""
  quotient = jnp.minimum(a, b) / jnp.where(b > 0, b, 1.0)
  return jnp.where(b > 0, quotient, jnp.where(a > 0, 1.0, empty))


def at_tokens(
    rows: Float32[Array, "gamma vocab"], tokens: Int[Array, " gamma"]
) -> Float32[Array, " gamma"]:
  """Picks one entry of each row."""
  return jnp.take_along_axis(rows, tokens[:, None], axis=-1)[:, 0]


def check_lenience(lenience: float) -> None:
  """Raises ValueError unless a lenience is in (0, 1]."""
  if not 0 < lenience <= 1:
    raise ValueError(
        f"`lenience` must be in (0, 1], 1 = exact. Got {lenience}."
    )

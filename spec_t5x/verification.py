"""Which drafted tokens stand, and which token comes next, for one row.

The law of the text is the target's, whatever the draft (Leviathan et al.
2023, algorithm 1 and A.1; for whole blocks Sun et al. 2024). In the bodies p
is a law of the target, q one of the draft, l the lenience.

Everything is written for one row; callers `vmap` it. Laws are computed with
in float32. Uniforms lie in [0, 1) and a test is passed iff u < probability:
probability 0 never passes and probability 1 always does. No epsilon is added
anywhere.
"""

from typing import NamedTuple

from jax import nn
from jax import numpy as jnp
from jaxtyping import Array, Float, Float32, Int, UInt32

from spec_t5x.acceptance import (
    accept_probs,
    at_tokens,
    check_lenience,
    clipped_ratio,
    first_rejection,
    overlaps,
    residual_probs,
    survival_probs,
)
from spec_t5x.standardize import argmax, sample


class Verification(NamedTuple):
  """The verdict on one drafted block.

  Attributes:
    num_accepted: drafted tokens that stand, 0 to gamma.
    next_token: the token behind them, which the target's side draws.
    num_tested: drafted tokens that say something about the draft: those that
      stand and, unless all do, the first that does not.
    accept_prob: probability with which each position passes its test; 0 from
      `num_drafted` on.
    overlap: probability with which a token drawn from the draft's law passes
      the token test at each position (beta, definition 3.1): the sum of
      min(p / l, q). 0 from `num_drafted` on.
  """

  num_accepted: Int[Array, ""]
  next_token: Int[Array, ""]
  num_tested: Int[Array, ""]
  accept_prob: Float32[Array, " gamma"]
  overlap: Float32[Array, " gamma"]


class _Block(NamedTuple):
  """A drafted block with its laws in float32."""

  p: Float32[Array, "gamma_plus_1 vocab"]
  q: Float32[Array, "gamma vocab"] | None
  tokens: Int[Array, " gamma"]
  num_drafted: Int[Array, ""]


def verify_tokens(
    target_probs: Float[Array, "gamma_plus_1 vocab"],
    draft_probs: Float[Array, "gamma vocab"] | None,
    draft_tokens: Int[Array, " gamma"],
    accept_uniforms: Float[Array, " gamma"],
    next_token_bits: UInt32[Array, " 2"],
    lenience: float = 1.0,
    num_drafted: int | Int[Array, ""] | None = None,
) -> Verification:
  """Tests the drafted tokens one by one (Leviathan et al. 2023, algorithm 1).

  Token x_i stands iff u_i < p_i(x_i) / (l q_i(x_i)) and all before it stand.
  The next token is drawn from norm(max(0, p - q)) at the first rejection, or
  from the target's law behind the last drafted token.

  With l < 1 (A.5) the residual keeps q unscaled. Then no probability exceeds
  p / l, as the paper states, and the law is as close to the target's as this
  test allows: only what it accepts exceeds p, by a total variation of
  sum(min(p / l, q)) - sum(min(p, q)) at one position.

  Args:
    target_probs: p; row i is the law behind the first i drafted tokens.
    draft_probs: q, the very arrays the tokens were drawn from. None if they
      are a function of the known text: a point mass, for which p(x) accepts
      and p without x is the residual.
    draft_tokens: x.
    accept_uniforms: u.
    next_token_bits: random words for `standardize.sample`.
    lenience: l in (0, 1], static; 1 is exact.
    num_drafted: how many of the drafted tokens are tested; may be traced,
      None for all. If they all stand, the next token is drawn from row
      `num_drafted` of the target.

  Returns:
    The verdict.

  Raises:
    ValueError: if shapes do not fit, or `lenience` is out of range.
  """
  check_lenience(lenience)
  block = _block(target_probs, draft_probs, draft_tokens, num_drafted)
  _check_uniforms(accept_uniforms, draft_tokens.size)
  accept_prob = accept_probs(block.p[:-1], block.q, draft_tokens, lenience)
  drafted = jnp.arange(draft_tokens.size) < block.num_drafted
  accept_prob = jnp.where(drafted, accept_prob, 0.0)
  num_accepted = first_rejection(accept_uniforms < accept_prob)
  return _verdict(
      block, accept_prob, num_accepted, block.p, next_token_bits, lenience
  )


def verify_block(
    target_probs: Float[Array, "gamma_plus_1 vocab"],
    draft_probs: Float[Array, "gamma vocab"] | None,
    draft_tokens: Int[Array, " gamma"],
    accept_uniforms: Float[Array, " gamma"],
    next_token_bits: UInt32[Array, " 2"],
    num_drafted: int | Int[Array, ""] | None = None,
) -> Verification:
  """Tests the drafted block as one (Sun et al. 2024, algorithm 2).

  As exact as `verify_tokens`; no rule accepts more tokens on average. Let
  s_0 = 1, s_i = min(1, s_{i-1} p(x_i) / q(x_i)), and z_i the mass of
  max(0, s_i p - q) at the position behind the first i tokens. Length i passes
  with probability z_i / (z_i + 1 - s_i), the full length with its s. All
  lengths are tested, the longest that passes wins, and the next token is
  drawn from the law in z_i, normalised.

  `accept_prob[i - 1]` is the probability of length i. `num_tested` and
  `overlap` remain those of the token test, whose acceptance rate accepted /
  tested does not estimate here.

  Args:
    target_probs: p; row i is the law behind the first i drafted tokens.
    draft_probs: q. None for a point mass: then both tests give every length
      the same probability, and this is `verify_tokens`.
    draft_tokens: x.
    accept_uniforms: must be fresh in every iteration, not tied to a position
      of the text: lengths past the accepted one are looked at, too.
    next_token_bits: random words for `standardize.sample`.
    num_drafted: as in `verify_tokens`.

  Returns:
    The verdict.

  Raises:
    ValueError: if shapes do not fit.
  """
  if draft_probs is None or not draft_tokens.size:
    return verify_tokens(
        target_probs,
        draft_probs,
        draft_tokens,
        accept_uniforms,
        next_token_bits,
        num_drafted=num_drafted,
    )
  block = _block(target_probs, draft_probs, draft_tokens, num_drafted)
  _check_uniforms(accept_uniforms, draft_tokens.size)
  survival = survival_probs(
      at_tokens(block.p[:-1], block.tokens), at_tokens(block.q, block.tokens)
  )
  scaled = survival[:, None] * block.p
  excess = jnp.maximum(0.0, scaled[1:-1] - block.q[1:]).sum(axis=-1)
  inner = clipped_ratio(excess, excess + 1.0 - survival[1:-1], empty=1.0)
  length = jnp.arange(1, draft_tokens.size + 1)
  accept_prob = jnp.where(
      length < block.num_drafted, jnp.append(inner, 0.0), survival[1:]
  )
  accept_prob = jnp.where(length <= block.num_drafted, accept_prob, 0.0)
  passed = accept_uniforms < accept_prob
  num_accepted = jnp.max(jnp.where(passed, length, 0))
  return _verdict(block, accept_prob, num_accepted, scaled, next_token_bits)


def verify_greedy(
    target_logits: Float[Array, "gamma_plus_1 vocab"],
    draft_tokens: Int[Array, " gamma"],
    lenience: float = 1.0,
    num_drafted: int | Int[Array, ""] | None = None,
) -> Verification:
  """Tests the drafted tokens at temperature 0, where nothing is random.

  What `verify_tokens` does with one-hot laws, without making them: a token
  stands iff it is the target's argmax. Lenience has to act before the laws
  become one-hot (Leviathan et al. 2023, A.5): with l < 1 a token stands also
  if p(x) >= l max(p) in the softmax of the logits. (The paper prints <=,
  which at l = 1 would accept everything.)

  Args:
    target_logits: row i is behind the first i drafted tokens.
    draft_tokens: from any draft.
    lenience: l in (0, 1], static; 1 is exact.
    num_drafted: as in `verify_tokens`.

  Returns:
    The verdict, with probabilities that are 0 or 1.

  Raises:
    ValueError: if shapes do not fit, or `lenience` is out of range.
  """
  check_lenience(lenience)
  block = _block(target_logits, None, draft_tokens, num_drafted)
  best = argmax(block.p)
  stands = draft_tokens == best[:-1]
  if lenience < 1:
    # p(x) / max(p), which the normaliser of the softmax cancels from.
    best_logit = jnp.max(block.p[:-1], axis=-1)
    logit = at_tokens(block.p[:-1], draft_tokens)
    stands |= jnp.exp(logit - best_logit) >= lenience
  stands &= jnp.arange(draft_tokens.size) < block.num_drafted
  num_accepted = first_rejection(stands)
  accept_prob = stands.astype(jnp.float32)
  return Verification(
      num_accepted=num_accepted,
      next_token=best[num_accepted],
      num_tested=jnp.minimum(num_accepted + 1, block.num_drafted),
      accept_prob=accept_prob,
      overlap=accept_prob,
  )


def _verdict(
    block: _Block,
    accept_prob: Float32[Array, " gamma"],
    num_accepted: Int[Array, ""],
    scaled: Float32[Array, "gamma_plus_1 vocab"],
    next_token_bits: UInt32[Array, " 2"],
    lenience: float = 1.0,
) -> Verification:
  """Draws the next token; `scaled` is p as it enters the residual."""
  residual = residual_probs(
      scaled[num_accepted], _draft_law(block, num_accepted)
  )
  overlap = overlaps(block.p[:-1], block.q, block.tokens, lenience)
  drafted = jnp.arange(block.tokens.size) < block.num_drafted
  return Verification(
      num_accepted=num_accepted,
      next_token=sample(residual, next_token_bits),
      num_tested=jnp.minimum(num_accepted + 1, block.num_drafted),
      accept_prob=accept_prob,
      overlap=jnp.where(drafted, overlap, 0.0),
  )


def _draft_law(
    block: _Block, place: Int[Array, ""]
) -> Float32[Array, " vocab"]:
  """Returns q at `place`, zero throughout behind the last drafted token."""
  gamma, vocab = block.tokens.size, block.p.shape[-1]
  if not gamma:
    return jnp.zeros(vocab)
  # Places out of range read as the fill value.
  place = jnp.where(place < block.num_drafted, place, gamma)
  if block.q is None:
    token = block.tokens.at[place].get(mode="fill", fill_value=-1)
    return nn.one_hot(token, vocab)
  return block.q.at[place].get(mode="fill", fill_value=0.0)


def _block(
    p: Float[Array, "gamma_plus_1 vocab"],
    q: Float[Array, "gamma vocab"] | None,
    tokens: Int[Array, " gamma"],
    num_drafted: int | Int[Array, ""] | None,
) -> _Block:
  """Checks the shapes, casts to float32, defaults `num_drafted` to gamma."""
  gamma, vocab = tokens.size, p.shape[-1]
  if p.shape != (gamma + 1, vocab):
    raise ValueError(
        "The target must give (gamma + 1, vocab) ="
        f" {(gamma + 1, vocab)} values. Got {p.shape}."
    )
  if q is not None and q.shape != (gamma, vocab):
    raise ValueError(
        "`draft_probs` must have shape (gamma, vocab) ="
        f" {(gamma, vocab)}. Got {q.shape}."
    )
  return _Block(
      p=p.astype(jnp.float32),
      q=None if q is None else q.astype(jnp.float32),
      tokens=tokens,
      num_drafted=jnp.asarray(
          gamma if num_drafted is None else num_drafted, jnp.int32
      ),
  )


def _check_uniforms(uniforms: Float[Array, " gamma"], gamma: int) -> None:
  if uniforms.shape != (gamma,):
    raise ValueError(
        f"`accept_uniforms` must have shape (gamma,) = ({gamma},)."
        f" Got {uniforms.shape}."
    )

"""The state of the decoding loop, and what an iteration adds to it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from spec_t5x import standardize, texts
from spec_t5x.decoding_types import Counts, Settings
from spec_t5x.law import log_prob
from spec_t5x.types import Cache, Proposal
from spec_t5x.verification import Verification


class State(NamedTuple):
  """What an iteration reads and writes."""

  tokens: Int[Array, "rows length"]
  token_log_probs: Float[Array, "rows length"]
  index: Int[Array, " rows"]
  finished: Bool[Array, " rows"]
  finite: Bool[Array, " rows"]
  target_cache: Cache
  draft_cache: Cache
  counts: Counts
  iteration: Int[Array, ""]


def no_counts(rows: int, gamma: int) -> Counts:
  """Returns the counts before the first iteration."""
  return Counts(
      accept_counts=jnp.zeros((rows, gamma + 1), "int32"),
      tested=jnp.zeros((rows, gamma), "int32"),
      accepted=jnp.zeros((rows, gamma), "int32"),
      overlap=jnp.zeros((rows, gamma)),
      iterations=jnp.zeros(rows, "int32"),
      emitted=jnp.zeros(rows, "int32"),
  )


def emit(
    settings: Settings,
    state: State,
    proposal: Proposal,
    verdict: Verification,
    logits: Float[Array, "rows block vocab"],
    probs: Float[Array, "rows block vocab"] | None,
    room: Int[Array, " rows"],
) -> State:
  """Appends the accepted tokens and the next one, to EOS or to the limit.

  Args:
    settings: static settings.
    state: `index` and `finished` as before this iteration.
    proposal: what was drafted.
    verdict: one per row.
    logits: the target's, adjusted.
    probs: the target's laws; None if all rows are greedy.
    room: tokens up to each row's limit.
  """
  gamma = proposal.tokens.shape[1]
  place = jnp.arange(gamma + 1)
  num_accepted = verdict.num_accepted[:, None]
  drafted = jnp.pad(proposal.tokens, ((0, 0), (0, 1)))
  block = jnp.where(place < num_accepted, drafted, verdict.next_token[:, None])
  candidates = num_accepted[:, 0] + 1
  is_eos = (block == settings.eos_id) & (place <= num_accepted)
  to_eos = jnp.where(is_eos.any(axis=1), is_eos.argmax(axis=1) + 1, gamma + 2)
  emitted = jnp.minimum(jnp.minimum(candidates, to_eos), room)
  emitted = jnp.where(state.finished, 0, emitted)
  index = state.index + emitted
  log_probs = _token_log_probs(settings, block, logits, probs)
  return state._replace(
      tokens=texts.write_block(state.tokens, state.index + 1, block),
      token_log_probs=texts.write_block(
          state.token_log_probs, state.index + 1, log_probs
      ),
      index=index,
      finished=state.finished | (to_eos <= emitted) | (emitted >= room),
      counts=_count(state, verdict, emitted),
  )


def _token_log_probs(settings, block, logits, probs):
  """Log-probability of each token of the block under the target."""
  if not settings.rescale_log_probs:
    return log_prob(logits, block)
  if probs is None:
    # One-hot laws; only lenience lets another token than the argmax through.
    if settings.lenience == 1:
      return jnp.zeros(block.shape)
    return jnp.where(block == standardize.argmax(logits), 0.0, -jnp.inf)
  chosen = jnp.take_along_axis(probs, block[..., None], axis=-1)[..., 0]
  return jnp.log(chosen)


def _count(state: State, verdict, emitted) -> Counts:
  """Adds one iteration. What lies past the last emitted token never counts."""
  counts, active = state.counts, ~state.finished
  gamma = counts.tested.shape[1]
  accepted = jnp.minimum(verdict.num_accepted, emitted)
  # The drafted token at the place of a rejection was tested, too.
  tested = jnp.minimum(verdict.num_tested, emitted)
  place = jnp.arange(gamma)
  was_tested = (place < tested[:, None]) & active[:, None]
  histogram = jax.nn.one_hot(accepted, gamma + 1, dtype="int32")
  return Counts(
      accept_counts=counts.accept_counts + histogram * active[:, None],
      tested=counts.tested + was_tested,
      accepted=counts.accepted + (was_tested & (place < accepted[:, None])),
      overlap=counts.overlap + jnp.where(was_tested, verdict.overlap, 0.0),
      iterations=counts.iterations + active,
      emitted=counts.emitted + emitted,
  )

"""Tests of what an iteration adds to the state, by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from spec_t5x.decoding_types import Settings
from spec_t5x.law import Sampling
from spec_t5x.loop_state import State, emit, no_counts
from spec_t5x.types import EOS_ID, Proposal
from spec_t5x.verification import Verification

GAMMA, VOCAB, LENGTH = 3, 8, 12
DRAFTED = [4, 5, 6]
NEXT = 7


def make_state(finished=False, index=2):
  return State(
      tokens=jnp.full((1, LENGTH), 2),
      token_log_probs=jnp.zeros((1, LENGTH)),
      index=jnp.array([index]),
      finished=jnp.array([finished]),
      finite=jnp.array([True]),
      target_cache=(),
      draft_cache=(),
      counts=no_counts(1, GAMMA),
      iteration=jnp.array(0),
  )


def step(num_accepted, drafted=None, next_token=NEXT, room=9, **state):
  """The state after one verdict, and its counts as lists."""
  verdict = Verification(
      num_accepted=jnp.array([num_accepted]),
      next_token=jnp.array([next_token]),
      num_tested=jnp.array([min(num_accepted + 1, GAMMA)]),
      accept_prob=jnp.full((1, GAMMA), 0.5),
      overlap=jnp.array([[0.5, 0.25, 0.125]]),
  )
  after = emit(
      Settings(LENGTH, Sampling(greedy=True, num_ids=VOCAB)),
      make_state(**state),
      Proposal(jnp.array([drafted or DRAFTED]), None),
      verdict,
      jnp.zeros((1, GAMMA + 1, VOCAB)),
      None,
      jnp.array([room]),
  )
  counts = {
      name: np.asarray(value)[0].tolist()
      for name, value in after.counts._asdict().items()
  }
  return after, counts


def text(state):
  """Tokens behind the two that were known before."""
  return state.tokens[0, 3 : int(state.index[0]) + 1].tolist()


@pytest.mark.parametrize("num_accepted", range(GAMMA + 1))
def test_accepted_tokens_and_the_next_one_are_written(num_accepted):
  state, counts = step(num_accepted)
  assert text(state) == [*DRAFTED[:num_accepted], NEXT]
  assert not state.finished[0]
  assert counts["emitted"] == num_accepted + 1
  assert counts["iterations"] == 1
  expected = [int(place == num_accepted) for place in range(GAMMA + 1)]
  assert counts["accept_counts"] == expected
  # The rejected token was tested, too.
  tested = min(num_accepted + 1, GAMMA)
  assert sum(counts["tested"]) == tested
  assert sum(counts["accepted"]) == num_accepted
  assert counts["overlap"] == [0.5, 0.25, 0.125][:tested] + [0.0] * (
      GAMMA - tested
  )


def test_nothing_stands_behind_an_accepted_eos():
  state, counts = step(3, drafted=[4, EOS_ID, 6])
  assert text(state) == [4, EOS_ID]
  assert state.finished[0]
  # What was drafted behind EOS says nothing about the draft.
  assert counts["tested"] == [1, 1, 0]
  assert counts["accept_counts"] == [0, 0, 1, 0]
  assert counts["emitted"] == 2


def test_a_rejected_eos_does_not_end_the_text():
  state, _ = step(1, drafted=[4, EOS_ID, 6])
  assert text(state) == [4, NEXT]
  assert not state.finished[0]


def test_eos_drawn_by_the_target_ends_the_text():
  state, _ = step(1, next_token=EOS_ID)
  assert text(state) == [4, EOS_ID]
  assert state.finished[0]


@pytest.mark.parametrize("room", [1, 2, 3, 4])
def test_a_text_ends_at_its_limit(room):
  state, counts = step(3, room=room)
  assert text(state) == [*DRAFTED, NEXT][:room]
  assert state.finished[0]
  assert counts["emitted"] == room
  assert sum(counts["accepted"]) == min(room, GAMMA)


def test_finished_rows_stand_still():
  state, counts = step(3, finished=True)
  assert text(state) == []
  assert state.finished[0]
  assert counts["emitted"] == counts["iterations"] == 0
  for name in ("accept_counts", "tested", "accepted", "overlap"):
    assert not any(counts[name]), name

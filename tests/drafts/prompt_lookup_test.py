"""Tests of prompt lookup: proposals by hand and against a plain search."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from spec_t5x.drafts import PromptLookup, PromptLookupDraft


def propose(inputs, text, gamma, max_ngram, length=None):
  """The tokens proposed for one text."""
  index = len(text)
  buffer = np.full(max(length or 0, index + gamma + 2), 9)
  buffer[: index + 1] = [0, *text]
  draft = PromptLookupDraft(gamma, max_ngram)
  proposal, _ = draft.propose(
      (),
      draft.start((), jnp.asarray([inputs], "int32").reshape(1, -1)),
      (),
      jnp.asarray(buffer[None], "int32"),
      jnp.array([index]),
      None,
      None,
  )
  assert proposal.tokens.shape == (1, gamma)
  assert proposal.probs is None
  return proposal.tokens[0, : int(proposal.num_drafted[0])].tolist()


@pytest.mark.parametrize(
    ("inputs", "text", "expected"),
    [
        # From the inputs, up to their end.
        ([5, 6, 7, 8, 1, 0, 0], [2, 5, 6], [7, 8, 1]),
        # The longest match wins, wherever it is.
        ([6, 3, 5, 6, 4, 1], [5, 6], [4, 1]),
        ([6, 3, 1], [5, 6, 4, 2, 5, 6], [4, 2, 5]),
        # The first of equal matches wins, and inputs come before the text.
        ([6, 3, 6, 4, 1], [6], [3, 6, 4]),
        ([6, 3, 1], [6, 4, 6], [3, 1]),
        # From the text, up to the last known token.
        ([0, 0], [5, 6, 5], [6, 5]),
        ([], [5, 5], [5]),
        # Nothing: no match, no text, or nothing known behind the match.
        ([5, 6, 1], [7], []),
        ([5, 6, 1, 0], [], []),
        ([5, 6], [6], []),
        # Neither BOS nor padding is matched.
        ([4, 0, 0, 0], [3, 0], []),
        # A match does not reach across BOS from the inputs to the text.
        ([5], [6, 7, 5, 6], [7, 5, 6]),
    ],
)
def test_by_hand(inputs, text, expected):
  assert propose(inputs, text, 3, 2) == expected


def plain_search(inputs, text, gamma, max_ngram):
  """What the docstrings say, in loops."""
  inputs = [token for token in inputs if token]
  for size in range(min(max_ngram, len(text)), 0, -1):
    for source in (inputs, text):
      for end in range(size, len(source)):
        if source[end - size : end] == text[-size:]:
          return source[end : end + gamma]
  return []


def test_like_a_plain_search():
  rng = np.random.default_rng(0)
  found = 0
  for _ in range(300):
    inputs = rng.integers(1, 5, rng.integers(0, 9)).tolist()
    padded = (inputs + [0] * 9)[:9]
    text = rng.integers(1, 5, rng.integers(0, 12)).tolist()
    gamma, max_ngram = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    expected = plain_search(inputs, text, gamma, max_ngram)
    assert propose(padded, text, gamma, max_ngram, 20) == expected
    found += len(expected)
  assert found > 300


def test_rows_are_independent():
  draft = PromptLookupDraft(2, 2)
  inputs = jnp.array([[5, 6, 7, 1], [6, 8, 1, 0]], "int32")
  tokens = jnp.array([[0, 5, 6, 9, 9, 9], [0, 6, 9, 9, 9, 9]], "int32")
  proposal, _ = jax.jit(draft.propose, static_argnums=(5, 6))(
      (), draft.start((), inputs), (), tokens, jnp.array([2, 1]), None, None
  )
  np.testing.assert_array_equal(proposal.tokens, [[7, 1], [8, 1]])
  np.testing.assert_array_equal(proposal.num_drafted, [2, 2])


@pytest.mark.parametrize("size", [0, -1, 1.5])
def test_bad_size(size):
  with pytest.raises(ValueError, match="`max_ngram` must be an integer"):
    PromptLookup(size)

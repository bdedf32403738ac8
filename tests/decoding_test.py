"""What the loop does with scripted blocks: lengths, EOS, limits, counts."""

import numpy as np
import pytest
import toy_models
from jax import numpy as jnp

from spec_t5x.decoding_types import Models, Weights

VOCAB = 8


def decode(target, draft, gamma, limits, greedy=True, **changes):
  """Decodes one text for each script of the target.

  Args:
    target: tokens [texts, length] that the target insists on.
    draft: tokens [texts, length] that are proposed for their places.
    gamma: tokens drafted in one iteration.
    limits: most tokens of each text.
    greedy: argmax, or temperature 1 with laws that are almost one-hot.
    **changes: see `toy_models.settings`.
  """
  target, draft = np.asarray(target), np.asarray(draft)
  texts, length = target.shape
  return toy_models.run(
      Models(toy_models.TableScorer(VOCAB), toy_models.ScriptedDraft(gamma)),
      toy_models.settings(length, VOCAB, greedy=greedy, **changes),
      Weights(
          toy_models.table_of_scripts(target, VOCAB),
          jnp.asarray(draft, "int32"),
      ),
      np.arange(texts)[:, None],
      toy_models.rows(texts, limits, float(not greedy)),
  )


def scripts(texts, length, seed=0):
  """Random tokens without EOS."""
  return np.random.default_rng(seed).integers(2, VOCAB, (texts, length))


def wrong(tokens):
  """Another token, neither PAD nor EOS."""
  return (tokens - 1) % (VOCAB - 2) + 2


SAMPLERS = pytest.mark.parametrize(
    "sampler",
    [
        dict(greedy=True),
        dict(greedy=False),
        dict(greedy=False, block_verification=True),
    ],
    ids=["greedy", "tokens", "block"],
)


@SAMPLERS
def test_every_number_of_accepted_tokens(sampler):
  """Row a accepts a tokens in each iteration, next to rows of other a."""
  gamma, iterations = 4, 4
  accepted = np.arange(gamma + 1)
  limits = iterations * (accepted + 1)
  target = scripts(gamma + 1, limits.max())
  place = np.arange(target.shape[1])
  rejected = place % (accepted[:, None] + 1) == accepted[:, None]
  draft = np.where(rejected, wrong(target), target)
  decoded = decode(target, draft, gamma, limits, **sampler)
  expected = np.where(place < limits[:, None], target, 0)
  np.testing.assert_array_equal(decoded.tokens, expected)
  counts = decoded.counts
  np.testing.assert_array_equal(counts.iterations, iterations)
  np.testing.assert_array_equal(counts.emitted, limits)
  np.testing.assert_array_equal(
      counts.accept_counts, iterations * np.eye(gamma + 1)
  )
  place = np.arange(gamma)
  np.testing.assert_array_equal(
      counts.tested, iterations * (place <= accepted[:, None])
  )
  np.testing.assert_array_equal(
      counts.accepted, iterations * (place < accepted[:, None])
  )


@SAMPLERS
def test_eos_inside_a_block_ends_the_text_there(sampler):
  """Tokens behind EOS, drafted and accepted though they were, do not exist."""
  gamma = 5
  eos_at = np.arange(gamma + 3)
  target = scripts(gamma + 3, 9)
  target[eos_at, eos_at] = 1
  decoded = decode(target, target, gamma, 9, **sampler)
  place = np.arange(9)
  np.testing.assert_array_equal(
      decoded.tokens, np.where(place <= eos_at[:, None], target, 0)
  )
  counts = decoded.counts
  np.testing.assert_array_equal(counts.emitted, eos_at + 1)
  # EOS may be the target's own token behind gamma accepted ones, or stand in
  # a second block.
  np.testing.assert_array_equal(counts.iterations, [1, 1, 1, 1, 1, 1, 2, 2])
  np.testing.assert_array_equal(
      counts.tested.sum(axis=1), [1, 2, 3, 4, 5, 5, 6, 7]
  )
  np.testing.assert_array_equal(counts.accepted, counts.tested)
  np.testing.assert_array_equal(
      counts.accept_counts.argmax(axis=1), [1, 2, 3, 4, 5, 5, 1, 2]
  )


@SAMPLERS
def test_eos_instead_of_a_rejected_token(sampler):
  gamma, places = 3, np.arange(3)
  target = scripts(3, 6)
  target[places, places] = 1
  draft = target.copy()
  draft[places, places] = 7
  decoded = decode(target, draft, gamma, 6, **sampler)
  np.testing.assert_array_equal(decoded.counts.emitted, places + 1)
  np.testing.assert_array_equal(
      decoded.tokens, np.where(np.arange(6) <= places[:, None], target, 0)
  )
  np.testing.assert_array_equal(decoded.counts.accept_counts[:, :3], np.eye(3))
  np.testing.assert_array_equal(
      decoded.counts.tested - decoded.counts.accepted, np.eye(3)
  )


@SAMPLERS
def test_limit_cuts_to_the_token_and_rejects_nothing(sampler):
  gamma, longest = 4, 11
  limits = np.arange(1, longest + 1)
  target = scripts(longest, longest)
  decoded = decode(target, target, gamma, limits, **sampler)
  place = np.arange(longest)
  np.testing.assert_array_equal(
      decoded.tokens, np.where(place < limits[:, None], target, 0)
  )
  counts = decoded.counts
  np.testing.assert_array_equal(counts.emitted, limits)
  np.testing.assert_array_equal(counts.accepted, counts.tested)
  np.testing.assert_array_equal(counts.iterations, -(-limits // (gamma + 1)))
  # Every token was tested but the ones behind a whole accepted block.
  np.testing.assert_array_equal(
      counts.tested.sum(axis=1), limits - limits // (gamma + 1)
  )


def test_pad_is_a_token_like_others():
  """The target may emit id 0 in the middle of a text."""
  target = np.array([[5, 0, 0, 6, 1, 7]])
  decoded = decode(target, target, 3, 6)
  np.testing.assert_array_equal(decoded.tokens, [[5, 0, 0, 6, 1, 0]])
  assert decoded.counts.emitted == 5


def test_another_id_may_end_texts():
  target = np.array([[5, 1, 3, 6]])
  decoded = decode(target, target, 2, 4, eos_id=3)
  np.testing.assert_array_equal(decoded.tokens, [[5, 1, 3, 0]])


def test_draft_of_the_most_probable_token_at_temperature_0():
  """A draft's favourite is not kept because the target likes it a little."""
  law = lambda prefix: (0.3, 0.5, 0.1, 0.1)
  scorer = toy_models.TableScorer(4)
  decoded = toy_models.run(
      Models(scorer, toy_models.ScriptedDraft(1)),
      toy_models.settings(1, 4, greedy=True, eos_id=3),
      Weights(toy_models.table_of(law, 4, 2), jnp.zeros((64, 1), "int32")),
      np.zeros((64, 1)),
      toy_models.rows(64, 1, 0.0),
  )
  np.testing.assert_array_equal(decoded.tokens, 1)

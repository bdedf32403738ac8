"""Faults that the enumeration of `decoding_law_test` must find.

Every fault is one that a speculative decoder was really released with, or one
that the papers warn of. Each test runs the loop with it and expects another
law than the target's.
"""

import dataclasses
from unittest import mock

import pytest
import toy_models
import toy_shortlist
from enumeration import Cells, Script, is_exact
from jax import numpy as jnp
from toy_laws import (
    BLOCK,
    HALVES,
    LISTED,
    MIXED,
    PAPER,
    SOFT,
    ToyLaws,
    softened,
)

from spec_t5x import acceptance, decoding, verification
from spec_t5x.drafts.model import ModelDraft


def always_accept(p, q, tokens, lenience):
  del p, q, lenience
  return jnp.ones(tokens.shape)


def swapped_ratio(p, q, tokens, lenience):
  return acceptance.accept_probs(q, p, tokens, lenience)


def target_law_for_residual(p, q):
  del q
  return p


def swapped_residual(p, q):
  return acceptance.residual_probs(q, p)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("accept_probs", acceptance.accept_probs),
        ("accept_probs", always_accept),
        ("accept_probs", swapped_ratio),
        ("residual_probs", target_law_for_residual),
        ("residual_probs", swapped_residual),
    ],
)
def test_faulty_rule(name, fault):
  laws = [ToyLaws(MIXED, 9)]
  with mock.patch.object(verification, name, fault):
    exact = is_exact(laws, 1, 2, Cells(4, 2, 4))
  assert exact == (fault is acceptance.accept_probs)


@dataclasses.dataclass(frozen=True)
class UntruncatedDraft(ModelDraft):
  """Draws after top-k, and returns the law from before it."""

  def propose(self, params, context, cache, tokens, index, law, bits):
    known = (params, context, cache, tokens, index)
    proposal, cache = super().propose(*known, law, bits)
    sampling = dataclasses.replace(law.sampling, top_k=0)
    untruncated, _ = super().propose(
        *known, law.replace(sampling=sampling), bits
    )
    return proposal._replace(probs=untruncated.probs), cache


@pytest.mark.parametrize("make_draft", [ModelDraft, UntruncatedDraft])
def test_draft_law_from_before_top_k(make_draft):
  exact = is_exact(
      [ToyLaws(SOFT, 4)],
      1,
      1,
      Cells(4, 2, 4),
      top_k=3,
      change=softened,
      make_draft=make_draft,
  )
  assert exact == (make_draft is ModelDraft)


@dataclasses.dataclass(frozen=True)
class OneUniform(Script):
  """All positions of a block are tested with the first one's number."""

  def words(self, keys, iteration, gamma):
    words = super().words(keys, iteration, gamma)
    return words._replace(accept=words.accept[:, :1].repeat(gamma, axis=1))


@pytest.mark.parametrize("script", [Script, OneUniform])
def test_one_uniform_for_a_block(script):
  exact = is_exact(
      [ToyLaws(HALVES, 22)],
      2,
      2,
      Cells(2, 2, 4),
      make_script=script.of,
  )
  assert exact == (script is Script)


@pytest.mark.parametrize("dropped", [0, 1])
@pytest.mark.parametrize("block_verification", [False, True])
def test_adaptive_stop_drops_the_token_it_looked_at(
    dropped, block_verification
):
  pairs, seed, accept = HALVES, 22, 2
  if block_verification:
    pairs, seed, accept = BLOCK, 12, (6, 2)
  exact = is_exact(
      [ToyLaws(pairs, seed)],
      2,
      2,
      Cells(2, accept, 4),
      make_draft=lambda *of: toy_models.AdaptiveDraft(*of, dropped=dropped),
      block_verification=block_verification,
  )
  assert exact == (not dropped)


@pytest.mark.parametrize("block_verification", [False, True])
def test_numbers_tied_to_the_position(block_verification):
  """Block verification looks at numbers that the next iteration sees again.

  Token verification does not, and stays exact.
  """
  index = None

  def iterate(*arguments):
    nonlocal index
    index = arguments[-1].index
    return original(*arguments)

  class ByPosition(Script):

    def words(self, keys, iteration, gamma):
      words_of = super().words
      words = words_of(keys, iteration, gamma)
      accept = [words_of(keys, i, gamma).accept for i in range(2)]
      places = index[:, None] + jnp.arange(gamma)
      accept = jnp.concatenate(accept, axis=1)
      return words._replace(accept=jnp.take_along_axis(accept, places, axis=1))

  original = decoding.iterate
  with mock.patch.object(decoding, "iterate", iterate):
    exact = is_exact(
        [ToyLaws(PAPER, None)],
        2,
        2,
        Cells(3, (2, 4), 3),
        make_script=ByPosition.of,
        block_verification=block_verification,
    )
  assert exact == (not block_verification)


class ShortBuffers(toy_models.TableScorer):
  """Forgets that a block reaches past the last token of a text."""

  def init_cache(self, batch, length):
    return super().init_cache(batch, length - 3)


@pytest.mark.parametrize("scorer", [toy_models.TableScorer, ShortBuffers])
def test_block_moved_back_into_a_short_buffer(scorer):
  with mock.patch.object(toy_models, "TableScorer", scorer):
    exact = is_exact([ToyLaws(MIXED, 9)], 1, 2, Cells(4, 2, 4))
  assert exact == (scorer is not ShortBuffers)


@pytest.mark.parametrize(
    ("make_draft", "exact"),
    [(toy_shortlist.listed_draft, True), (toy_shortlist.WholeLawDraft, False)],
)
def test_law_from_before_the_list(make_draft, exact):
  laws = [ToyLaws(LISTED, 0)]
  cells = Cells(2, 2, 12)
  assert is_exact(laws, 1, 2, cells, make_draft=make_draft) == exact

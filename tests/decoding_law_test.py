"""The loop's output law equals the target's, as fractions, by enumeration.

Nothing is sampled: every combination of random words is run through the loop
(see `enumeration`), so there is no false alarm and no tolerance. What must
make these tests fail is run in `decoding_law_controls_test`.
"""

from fractions import Fraction

import pytest
import toy_laws
import toy_models
import toy_shortlist
from enumeration import Cells, Script, is_exact, output_laws, text_law
from toy_laws import (
    BLOCK,
    FEW,
    HALVES,
    LISTED,
    MIXED,
    POINT,
    SOFT,
    VOCAB,
    ToyLaws,
)

from spec_t5x.decoding_types import Models, Weights
from spec_t5x.drafts.model import ModelDraft


def test_the_toys_end_inside_blocks_and_emit_pad():
  texts = text_law(ToyLaws(HALVES, 22).target, 3)
  assert sum(texts.values()) == 1
  assert len(texts) == 25
  assert len(set(texts.values())) == 5
  assert {(1, 0, 0), (2, 1, 0), (3, 0, 1), (2, 0, 2)} <= texts.keys()


def test_plain():
  assert is_exact(
      [ToyLaws(MIXED, 9), ToyLaws(HALVES, 22)], 0, 3, Cells(1, 1, 4)
  )


def test_one_token_drafted():
  laws = [ToyLaws(MIXED, seed) for seed in (6, 9, 11, 28)]
  assert is_exact(laws, 1, 3, Cells(4, 2, 4))


def test_one_token_drafted_four_iterations():
  assert is_exact([ToyLaws(HALVES, 22)], 1, 4, Cells(2, 2, 4))


def test_two_tokens_drafted():
  assert is_exact([ToyLaws(HALVES, 22)], 2, 3, Cells(2, 2, 4))


def test_three_tokens_drafted():
  laws = [ToyLaws(FEW, 14), ToyLaws(FEW, 22)]
  assert is_exact(laws, 3, 3, Cells(2, 2, 2))


def test_limit_below_the_buffer_and_below_gamma():
  laws = [ToyLaws(HALVES, seed) for seed in (6, 8, 22)]
  assert is_exact(laws, 2, 3, Cells(2, 2, 4), limit=1)


def test_block_verification():
  cells = Cells(2, (3, 2), 4)
  assert is_exact([ToyLaws(BLOCK, 12)], 2, 3, cells, block_verification=True)


@pytest.mark.parametrize("pairs", [toy_laws.PAPER, toy_laws.PAPER_EOS])
def test_block_verification_of_the_papers_example(pairs):
  cells = Cells(3, (2, 4), 3)
  laws = [ToyLaws(pairs, None)]
  assert is_exact(laws, 2, 2, cells, block_verification=True)


def test_block_verification_of_one_token():
  laws = [ToyLaws(MIXED, seed) for seed in (6, 9)]
  assert is_exact(laws, 1, 2, Cells(4, 2, 4), block_verification=True)


@pytest.mark.parametrize("block_verification", [False, True])
def test_point_masses(block_verification):
  assert is_exact(
      [ToyLaws(POINT, 1), ToyLaws(POINT, 6)],
      2,
      3,
      Cells(1, 2, 4),
      make_draft=toy_models.PointDraft,
      block_verification=block_verification,
  )


@pytest.mark.parametrize(
    ("gamma", "length", "block_verification"),
    [(1, 2, False), (1, 3, False), (2, 2, False), (1, 2, True)],
)
def test_a_draft_of_listed_tokens(gamma, length, block_verification):
  assert is_exact(
      [ToyLaws(LISTED, seed) for seed in (0, 1)],
      gamma,
      length,
      Cells(2, 2, 12),
      make_draft=toy_shortlist.listed_draft,
      block_verification=block_verification,
  )


def test_adaptive_stop():
  assert is_exact(
      [ToyLaws(HALVES, 22)],
      2,
      3,
      Cells(2, 2, 4),
      make_draft=toy_models.AdaptiveDraft,
  )


def test_adaptive_stop_with_block_verification():
  assert is_exact(
      [ToyLaws(BLOCK, 12), ToyLaws(BLOCK, 19)],
      2,
      2,
      Cells(2, (6, 4), 4),
      make_draft=toy_models.AdaptiveDraft,
      block_verification=True,
  )


@pytest.mark.parametrize(
    "sampling",
    [
        dict(temperature=0.5),
        dict(temperature=2.0, top_k=3, change=toy_laws.softened),
        dict(top_p=0.85, change=toy_laws.softened),
    ],
)
def test_temperature_and_truncation(sampling):
  laws = [ToyLaws(SOFT, seed) for seed in (4, 6, 9)]
  assert is_exact(laws, 1, 2, Cells(4, 2, 4), **sampling)


def test_lenience_bounds_every_probability():
  """No token is more than 1 / lenience times as probable (A.5)."""
  lenience = Fraction(1, 2)
  laws = [ToyLaws(HALVES, seed) for seed in range(6)]
  scorer = toy_models.TableScorer(VOCAB)
  outputs = output_laws(
      Models(scorer, ModelDraft(scorer, 1)),
      toy_models.settings(1, VOCAB, lenience=float(lenience)),
      Weights(*toy_laws.tables(laws, 2)),
      Script.of(Cells(2, 2, 4), 1, 1),
  )
  largest = 0
  for law, output in zip(laws, outputs, strict=True):
    probs = law.target(())
    for (token,), prob in output.items():
      assert prob <= probs[token] / lenience
      largest = max(largest, prob / probs[token])
  assert largest == 1 / lenience

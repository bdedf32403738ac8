"""Laws over four tokens whose decisions fall into a few equal cells.

Each pair is a target's law and a draft's. `ToyLaws` draws a pair for every
prefix, and an order of the tokens, so that a token read at a wrong place, or
a law taken from a wrong row, changes the law of the text.
"""

import dataclasses
from fractions import Fraction

import numpy as np
import toy_models

VOCAB = 4
_HALF, _QUARTER = Fraction(1, 2), Fraction(1, 4)

FLAT = (_QUARTER,) * 4
SKEWED = (_HALF, _QUARTER, _QUARTER, 0)
TWO = (_HALF, _HALF, 0, 0)
ONE = (1, 0, 0, 0)


def placed(law, *places):
  """The law with its k-th probability moved to `places[k]`."""
  moved = dict(zip(places, law, strict=False))
  return tuple(moved.get(token, 0) for token in range(VOCAB))


# Draft cells 4, accept cells 2, next-token cells 4.
MIXED = (
    (SKEWED, FLAT),
    (FLAT, SKEWED),
    (FLAT, TWO),
    (SKEWED, TWO),
    (SKEWED, SKEWED),
    (TWO, placed(TWO, 1, 2)),
    (TWO, placed(TWO, 2, 3)),
)
# Draft cells 2, accept cells 2, next-token cells 4.
HALVES = (
    (SKEWED, placed(TWO, 0, 2)),
    (SKEWED, placed(TWO, 1, 2)),
    (SKEWED, ONE),
    (FLAT, placed(TWO, 0, 3)),
    (TWO, placed(TWO, 1, 2)),
)
# Draft cells 2, accept cells 2, next-token cells 2.
FEW = (
    (TWO, ONE),
    (TWO, placed(TWO, 1, 2)),
    (TWO, placed(TWO, 2, 3)),
)
# For a draft of two listed tokens, on which FLAT is TWO: draft cells 2, accept
# cells 2, next-token cells 12.
LISTED = ((SKEWED, FLAT), (FLAT, FLAT), (TWO, FLAT))
# For block verification with gamma = 2: draft cells 2, accept cells 3 and 2
# (seed 12) or, with an adaptive stop, 6 and 4, next-token cells 4.
BLOCK = (
    (ONE, placed(TWO, 0, 2)),
    (FLAT, placed(TWO, 1, 2)),
    (SKEWED, placed(TWO, 0, 3)),
)
# Draft cells 4, accept cells 2, next-token cells 4; for `softened`.
SOFT = (
    (SKEWED, FLAT),
    (FLAT, SKEWED),
    (SKEWED, placed(SKEWED, 1, 0, 3)),
)
# For point masses on the draft's most probable token: accept cells 2,
# next-token cells 4.
POINT = (
    (SKEWED, ONE),
    (SKEWED, placed(ONE, 3)),
    (TWO, ONE),
)
# The running example of Sun et al. 2024, its two tokens first the ids 2 and 3
# and then EOS and 2. With gamma = 2: draft cells 3, accept cells 2 and 4,
# next-token cells 3.
THIRDS = (Fraction(1, 3), Fraction(2, 3))
PAPER = ((placed(THIRDS, 2, 3), placed(THIRDS, 3, 2)),)
PAPER_EOS = ((placed(THIRDS, 1, 2), placed(THIRDS, 2, 1)),)


@dataclasses.dataclass(frozen=True)
class ToyLaws:
  """Laws of a target and a draft for every prefix.

  Attributes:
    pairs: what they are drawn from.
    seed: of the drawing; None keeps the tokens in order.
  """

  pairs: tuple
  seed: int | None = 0

  def _pair(self, prefix):
    if self.seed is None:
      return self.pairs[0]
    rng = np.random.default_rng([self.seed, *(token + 1 for token in prefix)])
    pair = self.pairs[rng.integers(len(self.pairs))]
    order = rng.permutation(VOCAB)
    return tuple(tuple(Fraction(law[i]) for i in order) for law in pair)

  def target(self, prefix):
    return self._pair(prefix)[0]

  def draft(self, prefix):
    return self._pair(prefix)[1]


def tables(laws, depth, change=lambda law: law):
  """Target's and draft's tables for several `ToyLaws`, one text of each.

  Args:
    laws: the `ToyLaws`.
    depth: tokens of the longest prefix.
    change: applied to every law.
  """
  make = lambda law: toy_models.table_of(
      lambda prefix: change(law(prefix)), VOCAB, depth
  )
  stack = lambda parts: np.concatenate([make(part) for part in parts])
  return (
      stack([law.target for law in laws]),
      stack([law.draft for law in laws]),
  )


def softened(law):
  """A law that top-k = 3 and a nucleus of 0.85 turn into `law`.

  For `FLAT` and `SKEWED`: the token without mass gets a tenth.
  """
  missing = [prob == 0 for prob in law]
  assert sum(missing) <= 1
  if not any(missing):
    return law
  return [
      0.1 if gone else 0.9 * p for p, gone in zip(law, missing, strict=True)
  ]

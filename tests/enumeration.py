"""The exact law of the decoding loop's output, by running every case.

The loop draws its random words in one place. Here the words come from a
script instead: row r of a batch gets the r-th combination of all words it may
look at, each word the middle of one of a few equal cells of [0, 2**32). If no
decision of the loop falls between two words of a cell, the share of rows with
some output is the probability of that output, as an exact fraction.

A number of cells that does not fit the laws shows as a wrong result, not as a
wrong pass: middles keep rounding out of the decisions, and nothing else does.
"""

import collections
import dataclasses
import math
from collections.abc import Iterator
from fractions import Fraction
from unittest import mock

import jax
import numpy as np
import toy_laws
import toy_models
from jax import numpy as jnp

from spec_t5x import decoding
from spec_t5x.decoding_types import Models, Rows, Weights
from spec_t5x.drafts.model import ModelDraft

_CHUNK = 1 << 17
# Rows from which optimised code is worth its compile time.
_WORTH_OPTIMISING = 1 << 15


@dataclasses.dataclass(frozen=True)
class Cells:
  """Cells of each word of one iteration.

  Attributes:
    draft: of the words that draw the drafted tokens.
    accept: of the words of the tests, one number or one for each place.
    next_token: of the word that draws the next token.
  """

  draft: int
  accept: int | tuple[int, ...]
  next_token: int

  def radices(self, gamma: int, room: int) -> list[int]:
    """Cells of the words in the order draft, accept, next token."""
    used = min(gamma, room)
    accept = self.accept
    if isinstance(accept, int):
      accept = (accept,) * gamma
    unused = [1] * (gamma - used)
    draft = [self.draft] * used
    return [*draft, *unused, *accept[:used], *unused, self.next_token]


@dataclasses.dataclass(frozen=True)
class Script:
  """All combinations of words for texts of at most `limit` tokens.

  Attributes:
    radices: [iterations, words], the cells of every word.
  """

  radices: tuple[tuple[int, ...], ...]

  @classmethod
  def of(cls, cells: Cells, gamma: int, limit: int) -> "Script":
    """Iteration i has at most `limit - i` tokens to write."""
    rooms = range(limit, 0, -1)
    return cls(tuple(tuple(cells.radices(gamma, room)) for room in rooms))

  @property
  def size(self) -> int:
    """Number of combinations."""
    return math.prod(map(math.prod, self.radices))

  def words(self, keys, iteration, gamma):
    """Stands in for `decoding._random_words`; a key holds a row's number."""
    radices = np.asarray(self.radices, "uint32")
    strides = np.cumprod([1, *radices.ravel()[:-1]]).reshape(radices.shape)
    # Finished rows go on reading words, past the end of the script.
    place = jnp.minimum(iteration, len(radices) - 1)
    radix = jnp.asarray(radices)[place]
    stride = jnp.asarray(strides.astype("uint32"))[place]
    number = jax.random.key_data(keys)[:, 1:]
    digit = number // stride % radix
    words = (2 * digit + 1) * (np.uint32(2**31) // radix)
    draft, accept, next_token = jnp.split(words, [gamma, 2 * gamma], axis=1)
    return decoding._Words(
        draft=jnp.stack([draft, draft], axis=-1),
        accept=accept.astype("float32") * 2.0**-32,
        next_token=jnp.tile(next_token, 2),
    )


def output_laws(
    models, settings, weights, script: Script, temperature=1.0, limit=None
) -> list[dict[tuple[int, ...], Fraction]]:
  """Runs the loop on all combinations of words.

  Args:
    models: of the loop; the target is a `TableScorer`.
    settings: of the loop.
    weights: of the loop.
    script: the combinations.
    temperature: of every row.
    limit: most tokens of a text, by default `max_length`.

  Returns:
    For each text of the target's table, the probability of every output that
    occurs, padded to `max_length`.
  """
  options = {}
  texts = len(weights.target)
  if texts * script.size < _WORTH_OPTIMISING:
    options["xla_backend_optimization_level"] = 0
  # A fresh function object: jit's cache must not outlive the patch.
  decode = jax.jit(
      lambda *data: decoding.decode(models, settings, *data),
      compiler_options=options,
  )
  counts = [collections.Counter() for _ in range(texts)]
  with mock.patch.object(decoding, "_random_words", script.words):
    for numbers in _chunks(script.size):
      for text in range(texts):
        inputs = jnp.full((len(numbers), 1), text, "int32")
        rows = _rows(numbers, limit or settings.max_length, temperature)
        decoded = decode(weights, inputs, rows)
        assert bool(decoded.finite.all())
        counts[text].update(
            _count(np.asarray(decoded.tokens)[numbers < script.size])
        )
  total = script.size
  return [{key: Fraction(n, total) for key, n in c.items()} for c in counts]


def _rows(numbers, limit, temperature) -> Rows:
  """Rows whose keys are their numbers."""
  batch = len(numbers)
  return Rows(
      prompt=jnp.zeros((batch, 0), "int32"),
      limit=jnp.full(batch, limit, "int32"),
      temperature=jnp.full(batch, temperature, "float32"),
      keys=jax.random.wrap_key_data(
          np.stack([np.zeros_like(numbers), numbers], axis=1)
      ),
  )


def _count(outputs) -> dict[tuple[int, ...], int]:
  outputs, repeats = np.unique(outputs, axis=0, return_counts=True)
  return dict(zip(map(tuple, outputs.tolist()), repeats.tolist(), strict=True))


def _chunks(size: int) -> Iterator[np.ndarray]:
  """Row numbers in chunks of one length, the last reaching past `size`."""
  length = min(size, _CHUNK)
  for start in range(0, size, length):
    yield np.arange(start, start + length, dtype="uint32")


def text_law(
    laws, max_length: int, eos_id: int = 1, limit: int | None = None
) -> dict[tuple[int, ...], Fraction]:
  """The law of texts that `laws`, a function of the prefix, describes.

  Args:
    laws: maps a prefix, a tuple of tokens, to Fractions, one per token.
    max_length: texts are padded to this.
    eos_id: ends a text.
    limit: most tokens of a text, by default `max_length`.
  """
  limit = limit or max_length
  result = {}

  def extend(prefix, mass):
    if len(prefix) == limit or prefix[-1:] == (eos_id,):
      result[prefix + (0,) * (max_length - len(prefix))] = mass
      return
    for token, prob in enumerate(laws(prefix)):
      if prob:
        extend((*prefix, token), mass * prob)

  extend((), Fraction(1))
  return result


def is_exact(
    laws,
    gamma: int,
    max_length: int,
    cells: Cells,
    *,
    make_draft=ModelDraft,
    make_script=Script.of,
    limit: int | None = None,
    temperature: float = 1.0,
    change=lambda law: law,
    **changes,
) -> bool:
  """Whether the loop's output has the target's law, for each of `laws`.

  Args:
    laws: the `ToyLaws`, each a text.
    gamma: tokens drafted in one iteration; 0 for none.
    max_length: positions of a text.
    cells: cells that fit the laws.
    make_draft: makes the draft of a scorer and gamma.
    make_script: makes the script of cells, gamma and limit.
    limit: most tokens of a text, by default `max_length`.
    temperature: of every row; the logits are made for it.
    change: applied to every law; the sampling settings undo it.
    **changes: see `toy_models.settings`.
  """
  scorer = toy_models.TableScorer(toy_laws.VOCAB)
  target, draft = toy_laws.tables(laws, max_length + gamma, change)
  outputs = output_laws(
      Models(scorer, make_draft(scorer, gamma) if gamma else None),
      toy_models.settings(max_length, toy_laws.VOCAB, **changes),
      Weights(target * temperature, draft * temperature),
      make_script(cells, gamma, limit or max_length),
      temperature,
      limit,
  )
  expected = [text_law(law.target, max_length, limit=limit) for law in laws]
  return outputs == expected

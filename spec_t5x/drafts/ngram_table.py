"""Tables of n-gram counts, built in one pass and read inside the loop.

The law of a table is interpolated (Witten and Bell 1991). Let n(h x) be how
often token x follows context h, n(h) the sum over x, t(h) how many different
tokens follow h, and h' the context without its first token:

  q(x | h) = (n(h x) + t(h) q(x | h')) / (n(h) + t(h))

down to the uniform law, so that every token has a probability above 0. A
context that never occurred has the law of h'. A context keeps its commonest
continuations only; the counts of the others are given to q(x | h').

Laws over a vocabulary are never stored: a bigram table as a matrix of 32k x
32k would take 4 GB. A table of the shipped English-German corpus takes 0.7 MB
for bigrams and 5 MB for trigrams.
"""

import os
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import safetensors
from flax import struct
from jaxtyping import Array, Float, Int, UInt32
from safetensors import numpy as safetensors_numpy

from spec_t5x.types import BOS_ID

ORDERS = (1, 2, 3)
_FORMAT = "spec_t5x n-gram table"


@struct.dataclass
class Level:
  """All contexts of one length, sorted, and what follows them.

  Entries `start[c]` to `start[c + 1]` are the continuations of context c.

  Attributes:
    keys: the context's tokens as digits of a number to the base `vocab_size`.
    backoff: weight of the law of the context without its first token.
    start: first entry of each context.
    tokens: the token of each entry.
    probs: n(h x) / (n(h) + t(h)) of each entry.
  """

  keys: UInt32[Array, " contexts"]
  backoff: Float[Array, " contexts"]
  start: Int[Array, " contexts_plus_1"]
  tokens: Int[Array, " entries"]
  probs: Float[Array, " entries"]


@struct.dataclass
class NgramTable:
  """A law for every context of up to two tokens.

  An array of it is a parameter of the compiled loop, so tables of one size
  share a program.

  Attributes:
    unigram: law of a token without context.
    levels: contexts of one token, of two tokens.
    window: most continuations of any context.
  """

  unigram: Float[Array, " vocab"]
  levels: tuple[Level, ...]
  window: int = struct.field(pytree_node=False)

  @property
  def order(self) -> int:
    """1 for unigrams, 2 for bigrams, 3 for trigrams."""
    return len(self.levels) + 1

  @property
  def vocab_size(self) -> int:
    """Number of ids."""
    return self.unigram.shape[0]

  @classmethod
  def build(
      cls,
      token_sequences: Iterable[Sequence[int]],
      order: int,
      vocab_size: int,
      max_continuations: int = 64,
  ) -> "NgramTable":
    """Counts the n-grams of texts.

    Args:
      token_sequences: texts as a decoder emits them: EOS at the end, no BOS,
        no padding. Read once.
      order: 1 for unigrams, 2 for bigrams, 3 for trigrams.
      vocab_size: number of ids.
      max_continuations: most tokens kept behind each context.

    Raises:
      ValueError: an argument is out of range, or there is no token.
    """
    _check_build(order, vocab_size, max_continuations)
    # Counted tokens at `places`, BOS between the texts.
    gap = np.full(order - 1, BOS_ID)
    texts = [np.asarray(text, np.int64) for text in token_sequences]
    stream = np.concatenate([np.append(gap, text) for text in texts] or [gap])
    counted = np.concatenate(
        [np.arange(order - 1 + text.size) >= order - 1 for text in texts]
        or [np.zeros(0, bool)]
    )
    places = np.flatnonzero(counted)
    if not places.size:
      raise ValueError("`token_sequences` must hold a token. Got none.")
    if not 0 <= stream.min() <= stream.max() < vocab_size:
      raise ValueError(
          f"`token_sequences` must hold ids in [0, {vocab_size})."
          f" Got {stream.min()} to {stream.max()}."
      )
    counts = np.bincount(stream[places], minlength=vocab_size)
    kinds = np.count_nonzero(counts)
    unigram = (counts + kinds / vocab_size) / (places.size + kinds)
    levels = tuple(
        _count(stream, places, length, vocab_size, max_continuations)
        for length in range(1, order)
    )
    return cls(unigram.astype(np.float32), levels, _window(levels))

  def probs(
      self, context: Int[Array, "*rows 2"]
  ) -> Float[Array, "*rows vocab"]:
    """Returns the law of the token behind each pair of tokens.

    Args:
      context: the last two tokens, BOS where the text is shorter.
    """
    pairs = context.reshape(-1, 2).astype("uint32")
    probs = jnp.broadcast_to(self.unigram, (len(pairs), self.vocab_size))
    for length, level in enumerate(self.levels, 1):
      key = jnp.zeros_like(pairs[:, 0])
      for place in range(2 - length, 2):
        key = key * self.vocab_size + pairs[:, place]
      probs = self._refine(level, key, probs)
    return probs.reshape(*context.shape[:-1], self.vocab_size)

  def _refine(
      self,
      level: Level,
      key: UInt32[Array, " rows"],
      probs: Float[Array, "rows vocab"],
  ) -> Float[Array, "rows vocab"]:
    """Mixes in what follows the contexts of one length."""
    last = level.keys.shape[0] - 1
    context = jnp.minimum(jnp.searchsorted(level.keys, key), last)
    found = level.keys[context] == key
    entries = level.start[context][:, None] + jnp.arange(self.window)
    kept = found[:, None] & (entries < level.start[context + 1][:, None])
    entries = jnp.where(kept, entries, 0)
    # Ids out of range are dropped.
    tokens = jnp.where(kept, level.tokens[entries], self.vocab_size)
    probs *= jnp.where(found, level.backoff[context], 1.0)[:, None]
    rows = jnp.arange(len(key))[:, None]
    return probs.at[rows, tokens].add(level.probs[entries], mode="drop")

  def save(self, path: str | os.PathLike[str]) -> pathlib.Path:
    """Writes a safetensors file, with its directory; returns its path."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {"unigram": self.unigram}
    for length, level in enumerate(self.levels, 1):
      for name, value in vars(level).items():
        arrays[f"{length}.{name}"] = value
    arrays = {name: np.asarray(value) for name, value in arrays.items()}
    metadata = {"format": _FORMAT, "order": str(self.order)}
    safetensors_numpy.save_file(arrays, path, metadata)
    return path

  @classmethod
  def load(cls, path: str | os.PathLike[str]) -> "NgramTable":
    """Reads a file that `save` wrote.

    Raises:
      FileNotFoundError: there is no file.
      ValueError: it is no n-gram table, or it is damaged.
    """
    if not pathlib.Path(path).is_file():
      raise FileNotFoundError(f"There is no n-gram table {path}.")
    try:
      with safetensors.safe_open(path, "numpy") as file:
        metadata = file.metadata() or {}
        arrays = {name: file.get_tensor(name) for name in file.keys()}
      table = _from_arrays(metadata, arrays)
    except (safetensors.SafetensorError, KeyError, ValueError) as error:
      raise ValueError(f"{path} is no n-gram table: {error!r}.") from error
    return table


def _check_build(order: int, vocab_size: int, max_continuations: int) -> None:
  if order not in ORDERS:
    raise ValueError(f"`order` must be one of {ORDERS}. Got {order!r}.")
  # A key has to fit 32 bits.
  if not 2 <= vocab_size <= 1 << 16:
    raise ValueError(
        f"`vocab_size` must be between 2 and {1 << 16}. Got {vocab_size}."
    )
  if max_continuations < 1:
    raise ValueError(
        f"`max_continuations` must be at least 1. Got {max_continuations}."
    )


def _count(
    stream: Int[np.ndarray, " length"],
    places: Int[np.ndarray, " tokens"],
    length: int,
    vocab_size: int,
    max_continuations: int,
) -> Level:
  """Counts what follows the contexts of one length."""
  key = np.zeros_like(places)
  for back in range(length, 0, -1):
    key = key * vocab_size + stream[places - back]
  ngrams, counts = np.unique(
      key * vocab_size + stream[places], return_counts=True
  )
  keys, tokens = np.divmod(ngrams, vocab_size)
  order = np.lexsort((tokens, -counts, keys))
  tokens, counts = tokens[order], counts[order]
  keys, first, kinds = np.unique(keys, return_index=True, return_counts=True)
  kept = np.arange(counts.size) - np.repeat(first, kinds) < max_continuations
  totals = np.add.reduceat(counts, first) + kinds
  probs = counts / np.repeat(totals, kinds)
  backoff = 1 - np.add.reduceat(np.where(kept, probs, 0), first)
  sizes = np.minimum(kinds, max_continuations)
  return Level(
      keys=keys.astype(np.uint32),
      backoff=backoff.astype(np.float32),
      start=np.append(0, np.cumsum(sizes)).astype(np.int32),
      tokens=tokens[kept].astype(np.int32),
      probs=probs[kept].astype(np.float32),
  )


def _window(levels: Sequence[Level]) -> int:
  return max((int(np.diff(level.start).max()) for level in levels), default=0)


def _from_arrays(
    metadata: dict[str, str], arrays: dict[str, Any]
) -> NgramTable:
  """Raises KeyError or ValueError if the arrays do not fit together."""
  if metadata.get("format") != _FORMAT:
    raise ValueError(f"its format is {metadata.get('format')!r}")
  levels = tuple(
      Level(
          **{
              name: arrays[f"{length}.{name}"]
              for name in Level.__dataclass_fields__
          }
      )
      for length in range(1, int(metadata["order"]))
  )
  vocab_size = len(arrays["unigram"])
  for level in levels:
    contexts, entries = len(level.keys), len(level.tokens)
    if not (
        len(level.backoff) == len(level.start) - 1 == contexts > 0
        and level.start[0] == 0
        and level.start[-1] == len(level.probs) == entries
        and (np.diff(level.start) > 0).all()
        and (np.diff(level.keys.astype(np.int64)) > 0).all()
        and 0 <= level.tokens.min() <= level.tokens.max() < vocab_size
    ):
      raise ValueError("its arrays do not fit together")
  return NgramTable(arrays["unigram"], levels, _window(levels))

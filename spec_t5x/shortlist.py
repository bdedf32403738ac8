"""A draft that proposes the tokens of a list, and no others.

The step of a small draft is mostly its logits: in the smallest shipped one
four bytes of five are read for them, though few tokens of a vocabulary make up
almost all of a language's text. A draft shortened to those proposes with a law
that is 0 elsewhere. The output law stays the target's, as it does with any
draft (Leviathan et al. 2023, appendix A.1); tokens off the list are the
target's own. Zhao et al. 2025, "FR-Spec", do so on GPUs.

A list is a text file of token ids, one a line. 'shipped:ende' and
'shipped:summ' are those of the package.
"""

import collections
import dataclasses
import os
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from spec_t5x import atomic
from spec_t5x.model import Model
from spec_t5x.types import EOS_ID, PAD_ID

_SHIPPED_PREFIX = "shipped:"
_SHIPPED = pathlib.Path(__file__).parent / "data" / "shortlists"


def find(name_or_path: str | os.PathLike[str]) -> pathlib.Path:
  """Returns the file of a list.

  Args:
    name_or_path: 'shipped:<name>' for one of this package, or a file.

  Raises:
    FileNotFoundError: the package has no such list; names those it has.
  """
  name = os.fspath(name_or_path)
  if not name.startswith(_SHIPPED_PREFIX):
    return pathlib.Path(name)
  path = _SHIPPED / f"{name.removeprefix(_SHIPPED_PREFIX)}.txt"
  if not path.is_file():
    names = sorted(path.stem for path in _SHIPPED.glob("*.txt"))
    raise FileNotFoundError(f"No shortlist is {name!r}. Shipped are {names}.")
  return path


def commonest(texts: Iterable[Sequence[int]], size: int) -> list[int]:
  """Returns the token ids that occur most often, the commonest first.

  Args:
    texts: token ids with EOS, like those that will be decoded.
    size: most ids to return.

  Raises:
    ValueError: `size` is not at least 1.
  """
  if size < 1:
    raise ValueError(f"`size` must be at least 1. Got {size}.")
  counts = collections.Counter(token for text in texts for token in text)
  by_count = sorted(counts, key=lambda token: (-counts[token], token))
  return by_count[:size]


def save(ids: Sequence[int], path: str | os.PathLike[str]) -> pathlib.Path:
  """Writes a list; returns its path."""
  path = pathlib.Path(path)
  path.parent.mkdir(parents=True, exist_ok=True)
  atomic.write_text(path, "".join(f"{token}\n" for token in ids))
  return path


def load(path: str | os.PathLike[str]) -> list[int]:
  """Reads a list.

  Raises:
    FileNotFoundError: there is no such file; names it.
    ValueError: a line is not a token id; names the file and the line.
  """
  path = pathlib.Path(path)
  if not path.is_file():
    raise FileNotFoundError(f"There is no shortlist {path}.")
  lines = path.read_text("utf-8").splitlines()
  for number, line in enumerate(lines, 1):
    if not line.isdecimal():
      raise ValueError(
          f"A shortlist must have a token id in each line. Got {line!r} in"
          f" line {number} of {path}."
      )
  return list(map(int, lines))


def shorten(draft: Model, ids: Sequence[int]) -> Model:
  """Returns a draft with logits for the tokens of a list, -inf for others.

  Args:
    draft: a model; it is not changed, and shares its other weights.
    ids: token ids. EOS should be one: a draft that cannot propose it leaves the
      end of every text to the target.

  Returns:
    The same model, to be used as a draft only.

  Raises:
    ValueError: `ids` is empty, names an id twice or one that the model has not,
      or the padding; or the model is shortened already.
  """
  config = draft.config
  if config.shortlist:
    raise ValueError(
        f"`draft` must not be shortened already. Got {draft.name!r}, of"
        f" {config.shortlist} tokens."
    )
  ids = np.asarray(ids, np.int32)
  _check(ids, config.vocab_size)
  params = {
      **draft.params,
      "decoder": _shorten(draft.params, ids, config.logits_via_embedding),
  }
  return dataclasses.replace(
      draft,
      name=f"{draft.name}, {len(ids)} tokens",
      config=dataclasses.replace(config, shortlist=len(ids)),
      params=params,
  )


def _check(ids: np.ndarray, vocab_size: int) -> None:
  if ids.ndim != 1 or not ids.size:
    raise ValueError(
        "`ids` must be a list of at least one token id."
        f" Got shape {ids.shape}."
    )
  wrong = ids[(ids <= PAD_ID) | (ids >= vocab_size)]
  if wrong.size:
    raise ValueError(
        f"`ids` must be from {EOS_ID} to {vocab_size - 1}. Got {wrong[0]}."
    )
  values, counts = np.unique(ids, return_counts=True)
  if counts.max() > 1:
    raise ValueError(
        "`ids` must not name a token twice. Got"
        f" {values[counts > 1][0]} {counts.max()} times."
    )


def _shorten(params: Any, ids: np.ndarray, tied: bool) -> dict[str, Any]:
  decoder = dict(params["decoder"])
  table = _table(params, decoder, tied)
  places = np.full(len(table), len(ids), np.int32)
  places[ids] = np.arange(len(ids))
  decoder["shortlist"] = {
      "kernel": jnp.take(table, ids, axis=0),
      "places": jax.device_put(places),
  }
  return decoder


def _table(
    params: Any, decoder: dict[str, Any], tied: bool
) -> Float[Array, "vocab embed"]:
  """The rows that logits are made with; out of `decoder`, if they are there."""
  if not tied:
    return decoder.pop("logits_dense")["kernel"].T
  owner = params if "token_embedder" in params else decoder
  return owner["token_embedder"]["embedding"]

"""What a decoder takes as its draft, and how command lines name it.

path/to/draft, shipped:NAME   a model, see `model.load`
ngram:FILE                    a table, see `scripts/build_ngrams.py`
lookup, lookup:N              copies what followed the last N tokens before
"""

import os
import pathlib

from spec_t5x import model
from spec_t5x.drafts import NgramTable, PromptLookup
from spec_t5x.model import Model

AnyDraft = Model | NgramTable | PromptLookup

_NGRAM, _LOOKUP = "ngram:", "lookup"


def is_model(name: str | os.PathLike[str]) -> bool:
  """Whether a draft of this name is a model, and not a table or a lookup."""
  name = os.fspath(name)
  return not name.startswith(_NGRAM) and name.partition(":")[0] != _LOOKUP


def find_draft(name: str | os.PathLike[str]) -> pathlib.Path | None:
  """Returns the directory or file of a draft, None if it needs none.

  Raises:
    FileNotFoundError: there is no such model. A missing table is found
      missing by `load_draft`.
  """
  name = os.fspath(name)
  if name.partition(":")[0] == _LOOKUP:
    return None
  if name.startswith(_NGRAM):
    return pathlib.Path(name.removeprefix(_NGRAM))
  return model.find(name)


def load_draft(
    name: str | os.PathLike[str], dtype: str = "float32"
) -> AnyDraft:
  """Loads a draft by its name, as command lines spell it.

  Args:
    name: see the head of this module.
    dtype: of a model's parameters and activations.

  Raises:
    FileNotFoundError: there is no such model or table.
    ValueError: it is damaged, or N is no integer above 0.
  """
  name = os.fspath(name)
  if name == _LOOKUP:
    return PromptLookup()
  if name.startswith(f"{_LOOKUP}:"):
    size = name.partition(":")[2]
    if not size.isdecimal():
      raise ValueError(
          f"`lookup:N` must have a number of tokens for N. Got {name!r}."
      )
    return PromptLookup(int(size))
  if name.startswith(_NGRAM):
    return NgramTable.load(name.removeprefix(_NGRAM))
  return model.load(name, dtype)

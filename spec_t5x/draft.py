"""What a decoder takes as its draft, and how command lines name it.

path/to/draft, shipped:NAME   a model, see `model.load`
shortlist:FILE+MODEL          a model that proposes the tokens of a list, see
                              `scripts/build_shortlist.py`, and no others
ngram:FILE                    a table, see `scripts/build_ngrams.py`
lookup, lookup:N              copies what followed the last N tokens before
"""

import os
import pathlib

from spec_t5x import model, shortlist
from spec_t5x.drafts import NgramTable, PromptLookup
from spec_t5x.model import Model

AnyDraft = Model | NgramTable | PromptLookup

_NGRAM, _LOOKUP, _SHORTLIST = "ngram:", "lookup", "shortlist:"


def is_model(name: str | os.PathLike[str]) -> bool:
  """Whether a draft of this name is a model, and not a table or a lookup."""
  name = os.fspath(name)
  return not name.startswith(_NGRAM) and name.partition(":")[0] != _LOOKUP


def find_draft(name: str | os.PathLike[str]) -> tuple[pathlib.Path, ...]:
  """Returns the directories and files of a draft, none if it needs none.

  Raises:
    FileNotFoundError: there is no such model or shipped list. A missing table
      or file is found missing by `load_draft`.
    ValueError: a list is named without a model.
  """
  name = os.fspath(name)
  if name.partition(":")[0] == _LOOKUP:
    return ()
  if name.startswith(_NGRAM):
    return (pathlib.Path(name.removeprefix(_NGRAM)),)
  if name.startswith(_SHORTLIST):
    ids, draft = _split(name)
    return shortlist.find(ids), model.find(draft)
  return (model.find(name),)


def _split(name: str) -> tuple[str, str]:
  """The file and the model of 'shortlist:FILE+MODEL'."""
  ids, plus, draft = name.removeprefix(_SHORTLIST).partition("+")
  if not (ids and plus and draft):
    raise ValueError(
        f"A shortlist's name must be 'shortlist:FILE+MODEL'. Got {name!r}."
    )
  return ids, draft


def load_draft(
    name: str | os.PathLike[str], dtype: str = "float32"
) -> AnyDraft:
  """Loads a draft by its name, as command lines spell it.

  Args:
    name: see the head of this module.
    dtype: of a model's parameters and activations.

  Raises:
    FileNotFoundError: there is no such model, table or list.
    ValueError: it is damaged, or N is no integer above 0, or a list is named
      without a model or has ids that the model has not.
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
  if name.startswith(_SHORTLIST):
    ids, draft = _split(name)
    ids = shortlist.load(shortlist.find(ids))
    return shortlist.shorten(model.load(draft, dtype), ids)
  return model.load(name, dtype)

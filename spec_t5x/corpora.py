"""The corpora shipped with the package, as plain text pairs.

Two tasks, each one compressed file of tab-separated rows (source text, target
text, id of the document it came from), and one made of their English:

  ende     English to German, from the LibreOffice and GNOME manuals.
  summ     A software package's description to its one-line synopsis.
  english  The sources of both, for decoder-only models: no source of its own.

`data/NOTICE.md` gives their origin, licences and row counts. The split is a
hash of the document's id, so no document is in two splits.
"""

import hashlib
import importlib.resources
import lzma
from collections.abc import Iterator
from typing import NamedTuple

__all__ = [
    "ENGLISH",
    "PREFIXES",
    "SPLITS",
    "TASKS",
    "Pair",
    "load_pairs",
    "split_of",
]

# The words T5 puts before its input to name the task (Raffel et al. 2020,
# appendix D).
PREFIXES = {
    "ende": "translate English to German: ",
    "summ": "summarize: ",
}
ENGLISH = "english"
TASKS = (*PREFIXES, ENGLISH)
SPLITS = ("train", "validation", "test")

_NUM_HASH_BINS = 40


class Pair(NamedTuple):
  """One example, as text.

  Attributes:
    source: What the model reads, task prefix included; empty in "english".
    target: What the model should write.
    origin: Id of the document the pair came from, e.g. `lohelp:<page>`.
  """

  source: str
  target: str
  origin: str


def split_of(origin: str) -> str:
  """Names the split of a document: 1 in 40 tests, 1 in 40 validates."""
  digest = hashlib.md5(origin.encode("utf-8"), usedforsecurity=False)
  hash_bin = int(digest.hexdigest(), 16) % _NUM_HASH_BINS
  return {0: "test", 1: "validation"}.get(hash_bin, "train")


def load_pairs(
    task: str, split: str, source_prefix: str | None = None
) -> list[Pair]:
  """Reads one split of a shipped corpus, in the file's order.

  Args:
    task: "ende", "summ" or "english".
    split: "train", "validation" or "test".
    source_prefix: Keep only pairs whose origin starts so, e.g. "lohelp:".

  Returns:
    The pairs; a `source` that is not empty starts with the task's T5 prefix.

  Raises:
    ValueError: Unknown task or split, or no pair has that origin.
  """
  if task not in TASKS:
    raise ValueError(f"`task` must be one of {TASKS}. Got {task!r}.")
  if split not in SPLITS:
    raise ValueError(f"`split` must be one of {SPLITS}. Got {split!r}.")
  pairs = [
      pair
      for pair in _all_pairs(task)
      if split_of(pair.origin) == split
      and pair.origin.startswith(source_prefix or "")
  ]
  if not pairs:
    raise ValueError(
        "`source_prefix` must start the origin of at least one pair. "
        f"Got {source_prefix!r}."
    )
  return pairs


def _all_pairs(task: str) -> Iterator[Pair]:
  """All pairs of a task, in the order of its files."""
  files = PREFIXES if task == ENGLISH else (task,)
  for file in files:
    for source, target, origin in _read_rows(file):
      if task == ENGLISH:
        yield Pair("", source, origin)
      else:
        yield Pair(PREFIXES[task] + source, target, origin)


def _read_rows(task: str) -> list[list[str]]:
  path = importlib.resources.files("spec_t5x") / "data" / f"{task}.tsv.xz"
  text = lzma.decompress(path.read_bytes()).decode("utf-8")
  # Not `splitlines`: that also cuts at characters such as U+2028.
  return [row.split("\t") for row in text.rstrip("\n").split("\n")]

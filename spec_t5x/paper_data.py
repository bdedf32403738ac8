"""The papers' data sets, as TensorFlow Datasets names and splits them.

A data set is downloaded and prepared when it is first read; XSum asks for a
step by hand, which TensorFlow Datasets explains.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from spec_t5x import corpora
from spec_t5x.corpora import Pair

__all__ = ["PAPER_DATA", "PaperData", "check_disjoint", "read_pairs"]


class PaperData(NamedTuple):
  """Where a task's texts stand in TensorFlow Datasets."""

  tfds_name: str
  columns: Mapping[str, str]  # Feature name to the data set's column.
  prefix: str = ""
  splits: Sequence[str] | Mapping[str, str] = corpora.SPLITS


PAPER_DATA = {
    # T5's version of WMT14: tests on newstest2014, validates on newstest2013.
    "wmt14_ende": PaperData(
        "wmt_t2t_translate/de-en:1.0.0",
        {"inputs": "en", "targets": "de"},
        corpora.PREFIXES["ende"],
    ),
    "cnn_dailymail": PaperData(
        "cnn_dailymail:3.4.0",
        {"inputs": "article", "targets": "highlights"},
        corpora.PREFIXES["summ"],
    ),
    "xsum": PaperData(
        "xsum:1.1.0",
        {"inputs": "document", "targets": "summary"},
        corpora.PREFIXES["summ"],
    ),
    # LM1B has no split for validation: as usual, the held-out texts serve.
    "lm1b": PaperData(
        "lm1b:1.1.0",
        {"targets": "text"},
        splits={"train": "train", "validation": "test", "test": "test"},
    ),
}


def check_disjoint(name: str, splits: Sequence[str]) -> None:
  """Raises ValueError if two splits of a data set are the same texts."""
  stored = PAPER_DATA[name].splits
  if isinstance(stored, Mapping):
    if len({stored[split] for split in splits}) < len(splits):
      raise ValueError(
          f"`split` must not name the texts of {name!r} twice."
          f" Got {'+'.join(splits)!r}, which are stored as {dict(stored)}."
      )


def read_pairs(name: str, split: str) -> Iterator[Pair]:
  """Reads a data set as texts, in its order, without the task's prefix.

  Args:
    name: one of `PAPER_DATA`.
    split: "train", "validation" or "test".

  Yields:
    Pairs; the source is empty where the data set has one column.
  """
  # SeqIO takes seconds to import.
  import seqio

  data = PAPER_DATA[name]
  source = seqio.TfdsDataSource(data.tfds_name, splits=data.splits)
  dataset = source.get_dataset(split, shuffle=False)
  for number, example in enumerate(dataset.as_numpy_iterator()):
    text = lambda feature, example=example: (
        example[data.columns[feature]].decode("utf-8")
        if feature in data.columns
        else ""
    )
    yield Pair(text("inputs"), text("targets"), f"{name}:{split}:{number}")

"""How this package's SeqIO tasks are put together.

Importing this module imports TensorFlow.
"""

import functools
import os
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import seqio
import tensorflow as tf

from spec_t5x.corpora import Pair

__all__ = [
    "features",
    "load_vocabulary",
    "normalize_spaces",
    "pairs_source",
    "register",
]

Metric = Callable[[Sequence[Any], Sequence[str]], Mapping[str, float]]


def load_vocabulary(
    path: str | os.PathLike[str], extra_ids: int
) -> seqio.SentencePieceVocabulary:
  """Opens a SentencePiece model.

  Args:
    path: Any address that TensorFlow can read.
    extra_ids: Sentinel ids above the pieces; T5 has 100.

  Raises:
    FileNotFoundError: There is no file at `path`.
  """
  path = os.fspath(path)
  if not tf.io.gfile.exists(path):
    raise FileNotFoundError(
        f"`vocabulary_path` must be a SentencePiece model file. Got {path!r}, "
        "where there is no file."
    )
  return seqio.SentencePieceVocabulary(path, extra_ids=extra_ids)


def features(
    vocabulary: seqio.Vocabulary,
    names: Sequence[str],
    prompt: str | None = None,
) -> dict[str, seqio.Feature]:
  """Features of one vocabulary; all but a prompt end in EOS."""
  return {
      name: seqio.Feature(vocabulary, add_eos=name != prompt) for name in names
  }


def normalize_spaces(text: str, **unused_seqio_arguments: Any) -> str:
  """A text as a SentencePiece model writes it, which knows no line breaks."""
  return " ".join(text.split())


def pairs_source(
    load: Callable[[str], Sequence[Pair]],
    splits: Sequence[str],
    names: Sequence[str] = ("inputs", "targets"),
) -> seqio.FunctionDataSource:
  """A source of pairs in memory.

  Args:
    load: From the name of a split to its pairs.
    splits: Names of the splits.
    names: Features to be had, of `inputs` and `targets`; `origin` is another
      field of every example.
  """
  # SeqIO asks for a named function, which a partial of one is not, too.
  dataset = functools.partial(_dataset, load, tuple(names))
  return seqio.FunctionDataSource(dataset, splits=splits)


def _dataset(
    load: Callable[[str], Sequence[Pair]],
    names: Sequence[str],
    split: str,
    shuffle_files: bool,
    seed: int | None = None,
) -> tf.data.Dataset:
  pairs = list(load(split))
  if shuffle_files:
    random.Random(seed).shuffle(pairs)
  columns = {
      "inputs": [pair.source for pair in pairs],
      "targets": [pair.target for pair in pairs],
      "origin": [pair.origin for pair in pairs],
  }
  return tf.data.Dataset.from_tensor_slices(
      {name: columns[name] for name in (*names, "origin")}
  )


def register(
    name: str,
    source: seqio.DataSource,
    output_features: Mapping[str, seqio.Feature],
    *,
    preprocessor: Callable[[tf.data.Dataset], tf.data.Dataset] | None = None,
    metric_fn: Metric | None = None,
    postprocess_fn: Callable[..., str] = normalize_spaces,
) -> str:
  """Registers one task, unless it is there already.

  Args:
    name: Of the task.
    source: Where its texts come from.
    output_features: See `features`.
    preprocessor: From the source's fields to the features' texts.
    metric_fn: SeqIO's metric of targets and predictions.
    postprocess_fn: SeqIO's, of targets and predictions alike.

  Returns:
    The name.

  Raises:
    ValueError: The name is taken by a task with another vocabulary.
  """
  if name in seqio.TaskRegistry.names():
    registered = seqio.TaskRegistry.get(name).output_features["targets"]
    if registered.vocabulary != output_features["targets"].vocabulary:
      raise ValueError(
          f"Task {name!r} is registered with another vocabulary, "
          f"{registered.vocabulary}. Choose another `name_prefix`."
      )
    return name
  seqio.TaskRegistry.add(
      name,
      source=source,
      preprocessors=[
          *([preprocessor] if preprocessor else []),
          seqio.preprocessors.tokenize,
          seqio.CacheDatasetPlaceholder(),
          seqio.preprocessors.append_eos_after_trim,
      ],
      output_features=dict(output_features),
      postprocess_fn=postprocess_fn,
      metric_fns=[metric_fn] if metric_fn else [],
  )
  return name

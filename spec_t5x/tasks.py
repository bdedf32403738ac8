"""SeqIO tasks: the shipped corpora, and the data sets of the papers.

Nothing is registered by importing this module (which imports TensorFlow), only
by a call. T5X then finds the tasks by name:

  spec_t5x_ende           shipped; English to German
  spec_t5x_summ           shipped; package description to synopsis
  spec_t5x_english        shipped; English texts, for decoder-only models:
                          targets and no inputs
  spec_t5x_wmt14_ende     WMT14 English to German (Leviathan et al. 2023, 4.1)
  spec_t5x_cnn_dailymail  news article to highlights (Leviathan et al. 2023)
  spec_t5x_xsum           news article to a sentence (Chen et al. 2023)
  spec_t5x_lm1b           single sentences (Leviathan et al. 2023, 4.2), as
                          english
"""

import functools
import os
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import seqio
import tensorflow as tf

from spec_t5x import corpora, metrics, vocabulary

__all__ = ["register_papers", "register_shipped"]

_SHIPPED_FEATURES = {
    **dict.fromkeys(corpora.PREFIXES, ("inputs", "targets")),
    corpora.ENGLISH: ("targets",),
}

_Metric = Callable[[Sequence[str], Sequence[str]], Mapping[str, float]]


def register_shipped(
    vocabulary_path: str | os.PathLike[str] = vocabulary.SHIPPED_PATH,
    *,
    extra_ids: int = 0,
    name_prefix: str = "spec_t5x_",
) -> tuple[str, ...]:
  """Registers the tasks on the shipped corpora, which need no download.

  Args:
    vocabulary_path: A SentencePiece model; the shipped one by default.
    extra_ids: Sentinel ids above the pieces; 100 for T5's own vocabulary.
    name_prefix: Put before the task names, to keep two vocabularies apart.

  Returns:
    The names of the tasks. Asking again with the same arguments is harmless.

  Raises:
    FileNotFoundError: There is no file at `vocabulary_path`.
    ValueError: A name is taken by a task with another vocabulary.
  """
  pieces = _load_vocabulary(vocabulary_path, extra_ids)
  metric_fns = {"ende": _bleu, "summ": _rouge}
  return tuple(
      _register(
          name_prefix + task,
          seqio.FunctionDataSource(
              functools.partial(_shipped_dataset, task), splits=corpora.SPLITS
          ),
          preprocessor=None,
          feature_names=_SHIPPED_FEATURES[task],
          pieces=pieces,
          metric_fn=metric_fns.get(task),
      )
      for task in corpora.TASKS
  )


def register_papers(
    vocabulary_path: str | os.PathLike[str],
    *,
    extra_ids: int = 100,
    name_prefix: str = "spec_t5x_",
) -> tuple[str, ...]:
  """Registers the papers' tasks, read through TensorFlow Datasets.

  A data set is downloaded and prepared when it is first read; XSum asks for a
  step by hand, which TensorFlow Datasets explains.

  Args:
    vocabulary_path: A SentencePiece model: T5's own, which stands as
      `spiece.model` in every Hugging Face T5 directory, or any address that
      TensorFlow can read.
    extra_ids: Sentinel ids above the pieces; T5 has 100.
    name_prefix: Put before the task names, to keep two vocabularies apart.

  Returns:
    The names of the tasks. Asking again with the same arguments is harmless.

  Raises:
    FileNotFoundError: There is no file at `vocabulary_path`.
    ValueError: A name is taken by a task with another vocabulary.
  """
  pieces = _load_vocabulary(vocabulary_path, extra_ids)
  return tuple(
      _register(
          name_prefix + name,
          seqio.TfdsDataSource(data.tfds_name, splits=data.splits),
          preprocessor=functools.partial(
              _to_pair, columns=data.columns, prefix=data.prefix
          ),
          feature_names=tuple(data.columns),
          pieces=pieces,
          metric_fn=data.metric_fn,
      )
      for name, data in _PAPER_DATA.items()
  )


def _bleu(targets: Sequence[str], predictions: Sequence[str]):
  return {"bleu": metrics.bleu(predictions, targets)}


def _rouge(targets: Sequence[str], predictions: Sequence[str]):
  return metrics.rouge(predictions, targets)


class _PaperData(NamedTuple):
  """Where a task's texts stand in TensorFlow Datasets."""

  tfds_name: str
  columns: Mapping[str, str]  # Feature name to the data set's column.
  prefix: str = ""
  metric_fn: _Metric | None = None
  splits: Sequence[str] | Mapping[str, str] = corpora.SPLITS


_PAPER_DATA = {
    # T5's version of WMT14: tests on newstest2014, validates on newstest2013.
    "wmt14_ende": _PaperData(
        "wmt_t2t_translate/de-en:1.0.0",
        {"inputs": "en", "targets": "de"},
        corpora.PREFIXES["ende"],
        _bleu,
    ),
    "cnn_dailymail": _PaperData(
        "cnn_dailymail:3.4.0",
        {"inputs": "article", "targets": "highlights"},
        corpora.PREFIXES["summ"],
        _rouge,
    ),
    "xsum": _PaperData(
        "xsum:1.1.0",
        {"inputs": "document", "targets": "summary"},
        corpora.PREFIXES["summ"],
        _rouge,
    ),
    # LM1B has no split for validation: as usual, the held-out texts serve.
    "lm1b": _PaperData(
        "lm1b:1.1.0",
        {"targets": "text"},
        splits={"train": "train", "validation": "test", "test": "test"},
    ),
}


def _load_vocabulary(
    path: str | os.PathLike[str], extra_ids: int
) -> seqio.SentencePieceVocabulary:
  path = os.fspath(path)
  if not tf.io.gfile.exists(path):
    raise FileNotFoundError(
        f"`vocabulary_path` must be a SentencePiece model file. Got {path!r}, "
        "where there is no file."
    )
  return seqio.SentencePieceVocabulary(path, extra_ids=extra_ids)


def _register(
    name: str,
    source: seqio.DataSource,
    *,
    preprocessor: Callable[[tf.data.Dataset], tf.data.Dataset] | None,
    feature_names: Sequence[str],
    pieces: seqio.SentencePieceVocabulary,
    metric_fn: _Metric | None,
) -> str:
  """Registers one task, unless it is there already, and returns its name."""
  if name in seqio.TaskRegistry.names():
    registered = seqio.TaskRegistry.get(name).output_features["targets"]
    if registered.vocabulary != pieces:
      raise ValueError(
          f"Task {name!r} is registered with another vocabulary, "
          f"{registered.vocabulary.sentencepiece_model_file!r}. "
          "Choose another `name_prefix`."
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
      output_features={
          feature: seqio.Feature(pieces, add_eos=True)
          for feature in feature_names
      },
      postprocess_fn=_normalize_spaces,
      metric_fns=[metric_fn] if metric_fn else [],
  )
  return name


def _shipped_dataset(
    task: str, split: str, shuffle_files: bool, seed: int | None = None
) -> tf.data.Dataset:
  pairs = corpora.load_pairs(task, split)
  if shuffle_files:
    random.Random(seed).shuffle(pairs)
  columns = {
      "inputs": [pair.source for pair in pairs],
      "targets": [pair.target for pair in pairs],
  }
  return tf.data.Dataset.from_tensor_slices(
      {name: columns[name] for name in _SHIPPED_FEATURES[task]}
  )


def _to_pair(
    dataset: tf.data.Dataset, columns: Mapping[str, str], prefix: str
) -> tf.data.Dataset:
  def convert(example: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    pair = {feature: example[column] for feature, column in columns.items()}
    if "inputs" in pair:
      pair["inputs"] = tf.strings.join([prefix, pair["inputs"]])
    return pair

  return dataset.map(convert, num_parallel_calls=tf.data.AUTOTUNE)


def _normalize_spaces(text: str, **unused_seqio_arguments: Any) -> str:
  # A SentencePiece model writes no newlines; the highlights of CNN/DailyMail
  # hold some.
  return " ".join(text.split())

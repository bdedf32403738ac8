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

`prompt_tasks` has those whose inputs are prompts.
"""

import functools
import os
from collections.abc import Mapping, Sequence

import seqio
import tensorflow as tf

from spec_t5x import corpora, metrics, paper_data, seqio_tasks, vocabulary

__all__ = ["register_papers", "register_shipped", "rouge", "task"]


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
  pieces = seqio_tasks.load_vocabulary(vocabulary_path, extra_ids)
  metric_fns = {"ende": bleu, "summ": rouge}
  registered = []
  for task in corpora.TASKS:
    names = ("targets",) if task == corpora.ENGLISH else ("inputs", "targets")
    load = functools.partial(corpora.load_pairs, task)
    registered.append(
        seqio_tasks.register(
            name_prefix + task,
            seqio_tasks.pairs_source(load, corpora.SPLITS, names),
            seqio_tasks.features(pieces, names),
            metric_fn=metric_fns.get(task),
        )
    )
  return tuple(registered)


def register_papers(
    vocabulary_path: str | os.PathLike[str],
    *,
    extra_ids: int = 100,
    name_prefix: str = "spec_t5x_",
) -> tuple[str, ...]:
  """Registers the papers' tasks, read through TensorFlow Datasets.

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
  pieces = seqio_tasks.load_vocabulary(vocabulary_path, extra_ids)
  metric_fns = {"wmt14_ende": bleu, "cnn_dailymail": rouge, "xsum": rouge}
  return tuple(
      seqio_tasks.register(
          name_prefix + name,
          seqio.TfdsDataSource(data.tfds_name, splits=data.splits),
          seqio_tasks.features(pieces, tuple(data.columns)),
          preprocessor=functools.partial(
              _to_pair, columns=data.columns, prefix=data.prefix
          ),
          metric_fn=metric_fns.get(name),
      )
      for name, data in paper_data.PAPER_DATA.items()
  )


def task(
    name: str,
    vocabulary_path: str | os.PathLike[str] = vocabulary.SHIPPED_PATH,
    *,
    extra_ids: int = 0,
    name_prefix: str = "spec_t5x_",
) -> str:
  """Registers a task and those beside it, for gin files that name one.

  Args:
    name: 'ende', 'summ' or 'english', shipped; or a name of `PAPER_DATA`.
    vocabulary_path: see `register_papers`; T5X compares it with the model's.
    extra_ids: see `register_papers`.
    name_prefix: see `register_papers`.

  Returns:
    The full name of the task.

  Raises:
    FileNotFoundError: There is no file at `vocabulary_path`.
    ValueError: There is no such task, or its name is taken by a task with
      another vocabulary.
  """
  known = (*corpora.TASKS, *paper_data.PAPER_DATA)
  if name not in known:
    raise ValueError(f"`name` must be one of {known}. Got {name!r}.")
  shipped = name in corpora.TASKS
  register = register_shipped if shipped else register_papers
  register(vocabulary_path, extra_ids=extra_ids, name_prefix=name_prefix)
  return name_prefix + name


def bleu(
    targets: Sequence[str], predictions: Sequence[str]
) -> dict[str, float]:
  """SeqIO's form of `metrics.bleu`."""
  return {"bleu": metrics.bleu(predictions, targets)}


def rouge(
    targets: Sequence[str], predictions: Sequence[str]
) -> dict[str, float]:
  """SeqIO's form of `metrics.rouge`."""
  return metrics.rouge(predictions, targets)


def _to_pair(
    dataset: tf.data.Dataset, columns: Mapping[str, str], prefix: str
) -> tf.data.Dataset:
  def convert(example: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    pair = {feature: example[column] for feature, column in columns.items()}
    if "inputs" in pair:
      pair["inputs"] = tf.strings.join([prefix, pair["inputs"]])
    return pair

  return dataset.map(convert, num_parallel_calls=tf.data.AUTOTUNE)

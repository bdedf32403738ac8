"""A T5 in memory, loaded from a directory or from the hub."""

import dataclasses
import os
import pathlib

import jax

from spec_t5x import checkpoints, packing
from spec_t5x.config import T5Config
from spec_t5x.types import Params
from spec_t5x.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True)
class Model:
  """Weights in memory, with what is needed to run them.

  Attributes:
    name: where they came from; names the model in errors and reports.
    config: sizes and switches.
    params: T5X parameter tree.
    vocabulary: text to ids and back, or None.
  """

  name: str
  config: T5Config
  params: Params
  vocabulary: Vocabulary | None = None


def load(
    name_or_path: str | os.PathLike[str],
    dtype: str = "float32",
    *,
    vocabulary: str | os.PathLike[str] | None = None,
    config: T5Config | None = None,
) -> Model:
  """Loads a T5 from a directory or from the Hugging Face hub.

  Args:
    name_or_path: a Hugging Face T5 directory, a T5X checkpoint directory, or
      a hub name such as 'google/flan-t5-small'.
    dtype: of parameters and activations, 'float32' or 'bfloat16'.
    vocabulary: a SentencePiece model; by default `spiece.model` in the
      directory, if there is one.
    config: what a T5X checkpoint does not tell; see
      `checkpoints.open_checkpoint`.

  Returns:
    The model.

  Raises:
    FileNotFoundError: neither the directory nor the hub has the name.
    ValueError: the directory does not hold a T5; the message names the file
      or tensor.
  """
  directory = pathlib.Path(checkpoints.resolve(name_or_path))
  config, params = checkpoints.load_params(directory, dtype, config=config)
  config = dataclasses.replace(config, dtype=dtype)
  if vocabulary is None and (directory / "spiece.model").exists():
    vocabulary = directory / "spiece.model"
  return Model(
      name=str(name_or_path),
      config=config,
      params=params,
      vocabulary=Vocabulary(vocabulary) if vocabulary else None,
  )


def for_decoding(model: Model) -> tuple[T5Config, Params]:
  """Returns the model in the layout that decodes fastest on this platform."""
  if jax.default_backend() == "cpu":
    return packing.pack(model.config, model.params)
  return model.config, model.params

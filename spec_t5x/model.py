"""A T5 in memory, loaded from a directory or from the hub."""

import dataclasses
import functools
import os
import pathlib

import jax
from jax.sharding import Mesh

from spec_t5x import checkpoints, packing, partitioning
from spec_t5x.config import T5Config
from spec_t5x.partitioning import AXIS_RULES, AxisRules
from spec_t5x.types import Params
from spec_t5x.vocabulary import SHIPPED_PATH, Vocabulary

# Names of the models in the package's data begin so.
_SHIPPED_PREFIX = "shipped:"
_SHIPPED = pathlib.Path(__file__).parent / "data" / "models"


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

  @functools.cached_property
  def packed(self) -> tuple[T5Config, Params]:
    """Configuration and parameters in the layout for CPUs, see `packing`.

    All decoders of a model share it, so that it is in memory once, and what
    one has left in a processor's cache is there for the next.
    """
    return packing.pack(self.config, self.params)


def find(name_or_path: str | os.PathLike[str]) -> pathlib.Path:
  """Returns the directory of a model.

  Args:
    name_or_path: 'shipped:<name>' for a model of this package, or what
      `checkpoints.resolve` takes: a directory or a hub name.

  Raises:
    FileNotFoundError: there is no such model; the message lists the shipped
      ones if one of them was meant.
  """
  name = os.fspath(name_or_path)
  if not name.startswith(_SHIPPED_PREFIX):
    return pathlib.Path(checkpoints.resolve(name_or_path))
  directory = _SHIPPED / name.removeprefix(_SHIPPED_PREFIX)
  if not directory.is_dir():
    names = sorted(path.name for path in _SHIPPED.glob("*"))
    raise FileNotFoundError(f"No model is {name!r}. Shipped are {names}.")
  return directory


def load(
    name_or_path: str | os.PathLike[str],
    dtype: str = "float32",
    *,
    vocabulary: str | os.PathLike[str] | None = None,
    config: T5Config | None = None,
    mesh: Mesh | None = None,
) -> Model:
  """Loads a T5 from a directory or from the Hugging Face hub.

  Args:
    name_or_path: a Hugging Face T5 directory, a T5X checkpoint directory, a
      hub name such as 'google/flan-t5-small', or 'shipped:<name>'.
    dtype: of parameters and activations, 'float32' or 'bfloat16'.
    vocabulary: a SentencePiece model; by default `spiece.model` in the
      directory, if there is one, or the package's own for shipped models.
    config: what a T5X checkpoint does not tell; see
      `checkpoints.open_checkpoint`.
    mesh: devices to load onto, each its own part of every tensor; by default
      one device. See `partitioning`.

  Returns:
    The model.

  Raises:
    FileNotFoundError: neither the directory nor the hub has the name.
    ValueError: the directory does not hold a T5, or the mesh does not divide
      it; the message names the file or tensor.
  """
  directory = find(name_or_path)
  put = None
  if mesh is not None:
    config = checkpoints.open_checkpoint(directory, config).config
    put = partitioning.put_onto(config, mesh)
  config, params = checkpoints.load_params(directory, dtype, put, config)
  config = dataclasses.replace(config, dtype=dtype)
  if vocabulary is None:
    vocabulary = _vocabulary_of(directory)
  return Model(
      name=str(name_or_path),
      config=config,
      params=params,
      vocabulary=Vocabulary(vocabulary) if vocabulary else None,
  )


def _vocabulary_of(directory: pathlib.Path) -> pathlib.Path | None:
  """The SentencePiece model that belongs to a directory of weights."""
  if directory.parent == _SHIPPED:
    return SHIPPED_PATH
  path = directory / "spiece.model"
  return path if path.exists() else None


def for_decoding(
    model: Model, mesh: Mesh | None = None, rules: AxisRules = AXIS_RULES
) -> tuple[T5Config, Params]:
  """Returns the model in the layout that decodes fastest on this platform.

  Args:
    model: in T5X's layout.
    mesh: devices to lay the parameters out on; None for one device.
    rules: how, on a mesh.

  Returns:
    The configuration, `packed` on a single CPU, and parameters to match.

  Raises:
    ValueError: an axis of the model is not divisible by the devices that it
      is split over.
  """
  if mesh is not None:
    params = partitioning.place(model.config, model.params, mesh, rules)
    return model.config, params
  if jax.default_backend() == "cpu":
    return model.packed
  return model.config, model.params

"""Opening a checkpoint of any format, and reading it tensor by tensor."""

import os
import pathlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spec_t5x.checkpoints import files, hugging_face, layout
from spec_t5x.checkpoints.reader import Reader
from spec_t5x.config import T5Config

# Places a tensor, given its T5X path, on devices.
Put = Callable[[str, np.ndarray], jax.Array]


def open_checkpoint(
    path: str | os.PathLike[str], config: T5Config | None = None
) -> Reader:
  """Opens a checkpoint directory; its content tells the format.

  Args:
    path: a Hugging Face T5 directory, or a T5X `checkpoint_<step>` directory,
      legacy or Orbax.
    config: architecture of the model. None takes `config.json`, or infers it
      from the shapes, since T5X keeps no architecture with its weights.

  Returns:
    The open checkpoint, checked; its tensors are read on demand.

  Raises:
    FileNotFoundError: there is nothing at `path`, or a file of it is missing.
    ValueError: the directory is of no known format, a file is damaged, or the
      tensors are not the model's.
  """
  root = files.checkpoint_directory(path)
  if (root / hugging_face.CONFIG).is_file():
    return hugging_face.HuggingFaceReader(root, config)
  # TensorStore and Orbax take seconds to import.
  if (root / "checkpoint").is_file():
    from spec_t5x.checkpoints.legacy import LegacyReader

    return LegacyReader(root, config)
  if (root / "state").is_dir():
    from spec_t5x.checkpoints.orbax import OrbaxReader

    return OrbaxReader(root, config)
  raise ValueError(_unknown_format(root))


def _unknown_format(root: pathlib.Path) -> str:
  steps = [child.name for child in root.glob("checkpoint_*")]
  if steps:
    steps.sort(key=lambda name: (len(name), name))
    return (
        f"{root} is a directory of checkpoints: {', '.join(steps)}. Pass one"
        f" of them, e.g. {root / steps[-1]}."
    )
  return (
      f"{root} holds neither {hugging_face.CONFIG} (a Hugging Face T5) nor"
      " `checkpoint` or `state` (a T5X `checkpoint_<step>`)."
  )


def load_params(
    directory: str | os.PathLike[str],
    dtype: str = "float32",
    put: Put | None = None,
    config: T5Config | None = None,
) -> tuple[T5Config, dict[str, Any]]:
  """Reads a checkpoint's parameters, one tensor at a time.

  Host memory holds one tensor beside what `put` keeps, so a model larger than
  it loads onto a mesh.

  Args:
    directory: see `open_checkpoint`.
    dtype: dtype of the parameters, 'float32' or 'bfloat16'. The dtype of
      activations is `config.dtype`.
    put: places one tensor, by default on JAX's default device.
    config: see `open_checkpoint`.

  Returns:
    The architecture, and the parameters as nested dicts under T5X's names.

  Raises:
    FileNotFoundError: see `open_checkpoint`.
    ValueError: see `open_checkpoint`.
  """
  target_dtype = layout.parameter_dtype(dtype)
  reader = open_checkpoint(directory, config)
  place = put or (lambda path, value: jnp.asarray(value))
  params = {
      path: place(path, reader.read(path).astype(target_dtype, copy=False))
      for path in reader.paths()
  }
  return reader.config, layout.unflatten(params)

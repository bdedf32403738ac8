"""Writing checkpoints that T5X restores."""

import os
import pathlib
from collections.abc import Mapping
from typing import Any

from spec_t5x.checkpoints import layout
from spec_t5x.checkpoints.reader import Reader, as_reader

FORMATS = ("legacy", "orbax")


def save_t5x(
    directory: str | os.PathLike[str],
    params: Mapping[str, Any] | Reader,
    step: int = 0,
    format: str = "legacy",
    dtype: str = "float32",
) -> pathlib.Path:
  """Writes `checkpoint_<step>` as T5X would for inference.

  There is no optimizer state in it, and no architecture: T5X gets that from
  gin, `open_checkpoint` from the shapes.

  Args:
    directory: T5X's model directory, in which the checkpoint is made.
    params: nested dict of arrays under T5X's names, or an open checkpoint,
      which 'legacy' streams and 'orbax' reads whole.
    step: the training step to record.
    format: 'legacy' (msgpack and zarr) or 'orbax'.
    dtype: dtype to write, 'float32' or 'bfloat16'.

  Returns:
    The checkpoint's directory.

  Raises:
    ValueError: `params` are no T5, an argument is out of range, or the
      checkpoint exists.
  """
  if format not in FORMATS:
    raise ValueError(f"`format` must be 'legacy' or 'orbax'. Got {format!r}.")
  if step < 0:
    raise ValueError(f"`step` must be at least 0. Got {step}.")
  target_dtype = layout.parameter_dtype(dtype)
  reader = as_reader(params)
  final = pathlib.Path(directory, f"checkpoint_{step}")
  # TensorStore and Orbax take seconds to import.
  if format == "legacy":
    from spec_t5x.checkpoints.legacy import write_legacy as write
  else:
    from spec_t5x.checkpoints.orbax import write_orbax as write
  write(final, reader, target_dtype, step)
  return final

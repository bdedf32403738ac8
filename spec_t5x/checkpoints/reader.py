"""A checkpoint as all formats show it: tensors by path, read one at a time."""

import pathlib
from collections.abc import Mapping
from typing import Any, Protocol

import jax.numpy as jnp
import numpy as np

from spec_t5x import processes
from spec_t5x.checkpoints import layout
from spec_t5x.checkpoints.layout import TensorSpec
from spec_t5x.config import T5Config


class Reader(Protocol):
  """An open checkpoint, checked against its configuration.

  Attributes:
    config: architecture of the model.
    vocabulary: its SentencePiece file, or None.
  """

  config: T5Config
  vocabulary: pathlib.Path | None

  def paths(self) -> Mapping[str, TensorSpec]:
    """Shapes and dtypes of all tensors by T5X path; reads none of them."""
    ...

  def read(self, path: str) -> np.ndarray:
    """Reads one tensor, in the file's dtype and T5X's axis order.

    Raises:
      ValueError: the file is damaged.
    """
    ...


class TreeReader:
  """Parameters that are already in memory, shown as a checkpoint.

  If devices of several processes hold them, all must read at once.
  """

  vocabulary = None

  def __init__(self, config: T5Config, params: Mapping[str, Any]):
    """Checks a tree.

    Args:
      config: architecture of the model.
      params: nested dict of arrays under T5X's names.

    Raises:
      ValueError: `params` are not a model of this configuration.
    """
    self.config = config
    self._arrays = layout.flatten(params)
    layout.check_specs(
        self.paths(), layout.parameter_shapes(config), "`params`"
    )

  def paths(self) -> dict[str, TensorSpec]:
    """See `Reader.paths`."""
    return {
        path: TensorSpec(tuple(array.shape), jnp.dtype(array.dtype).name)
        for path, array in self._arrays.items()
    }

  def read(self, path: str) -> np.ndarray:
    """See `Reader.read`."""
    return processes.fetch(self._arrays[path])


def as_reader(
    params: Mapping[str, Any] | Reader, config: T5Config | None = None
) -> Reader:
  """Returns parameters or an open checkpoint as the latter.

  Args:
    params: nested dict of arrays under T5X's names, or an open checkpoint.
    config: architecture of the model; None takes the checkpoint's, or infers
      it from the shapes (`layout.infer_config`).

  Raises:
    ValueError: `params` are not a model of this configuration.
  """
  if isinstance(params, Mapping):
    if config is None:
      specs = {
          path: TensorSpec(tuple(array.shape), str(array.dtype))
          for path, array in layout.flatten(params).items()
      }
      config = layout.infer_config(specs, "`params`")
    return TreeReader(config, params)
  if config is not None:
    layout.check_specs(
        params.paths(), layout.parameter_shapes(config), "`params`"
    )
  return params

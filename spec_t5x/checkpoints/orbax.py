"""T5X's checkpoints in Orbax format: `checkpoint_<step>/state/...`."""

import os
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import orbax.checkpoint as ocp

from spec_t5x.checkpoints import files, layout
from spec_t5x.checkpoints.layout import TensorSpec
from spec_t5x.checkpoints.reader import Reader
from spec_t5x.config import T5Config

STATE = "state"


class OrbaxReader:
  """A T5X checkpoint in Orbax format as a `Reader`.

  Optimizer states and the data iterator are ignored.
  """

  vocabulary = None

  def __init__(
      self,
      directory: str | os.PathLike[str],
      config: T5Config | None = None,
  ):
    """Opens and checks a checkpoint; reads no weights.

    Args:
      directory: the `checkpoint_<step>` directory.
      config: architecture of the model, None to infer it from the shapes.

    Raises:
      ValueError: a file is damaged, or the tensors are not the model's.
    """
    self._root = pathlib.Path(directory).resolve()
    files.check_links(self._root)
    self._handler = ocp.PyTreeCheckpointHandler()
    self._specs = _read_specs(self._handler, self._root / STATE)
    self.config = config or layout.infer_config(self._specs, str(self._root))
    layout.check_specs(
        self._specs, layout.parameter_shapes(self.config), str(self._root)
    )

  def paths(self) -> dict[str, TensorSpec]:
    """See `Reader.paths`."""
    return dict(self._specs)

  def read(self, path: str) -> np.ndarray:
    """See `Reader.read`."""
    args = ocp.RestoreArgs(restore_type=np.ndarray)
    with files.naming(path, self._root):
      restored = self._handler.restore(
          self._root / STATE,
          args=ocp.args.PyTreeRestore(
              item={"target": layout.unflatten({path: 0})},
              restore_args={"target": layout.unflatten({path: args})},
              partial_restore=True,
          ),
      )
      return layout.flatten(restored["target"])[path]


def _read_specs(
    handler: ocp.PyTreeCheckpointHandler, state: pathlib.Path
) -> dict[str, TensorSpec]:
  """Reads shapes and dtypes of the parameters.

  Raises:
    ValueError: the directory holds no T5X train state.
  """
  with files.naming(state.name, state.parent):
    tree = handler.metadata(state).tree["target"]
    return {
        path: TensorSpec(tuple(leaf.shape), np.dtype(leaf.dtype).name)
        for path, leaf in layout.flatten(tree).items()
    }


def write_orbax(
    directory: pathlib.Path, reader: Reader, dtype: np.dtype, step: int
) -> None:
  """Writes a checkpoint; Orbax wants all tensors in memory at once.

  Args:
    directory: where to; must be new or empty.
    reader: what to write.
    dtype: dtype to write.
    step: the training step to record.
  """
  final = files.new_directory(directory)
  target = {
      path: reader.read(path).astype(dtype, copy=False)
      for path in reader.paths()
  }
  tree: Mapping[str, Any] = {
      "state": {"step": np.int32(step)},
      "target": layout.unflatten(target),
  }
  handler = ocp.CompositeCheckpointHandler(state=ocp.PyTreeCheckpointHandler())
  with ocp.Checkpointer(handler) as checkpointer:
    # `force` permits an empty directory. Orbax renames when all is written.
    checkpointer.save(
        final,
        args=ocp.args.Composite(state=ocp.args.PyTreeSave(tree)),
        force=True,
    )

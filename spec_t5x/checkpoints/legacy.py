"""T5X's own ("legacy") checkpoints: a msgpack index beside zarr arrays.

A `checkpoint_<step>` directory holds the file `checkpoint`, a msgpack tree
whose leaves are arrays or TensorStore specs, and one zarr directory for each
spec, named by the tensor's path joined by dots.
"""

import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorstore
from flax import serialization

from spec_t5x.checkpoints import files, layout
from spec_t5x.checkpoints.layout import TensorSpec
from spec_t5x.checkpoints.reader import Reader
from spec_t5x.config import T5Config

INDEX = "checkpoint"

# The format since 2021: bfloat16 is written as such, not as uint16.
_VERSION = 3

_CHUNK_BYTES = 64 * 2**20


class LegacyReader:
  """A T5X legacy checkpoint as a `Reader`; optimizer states are ignored."""

  vocabulary = None

  def __init__(
      self,
      directory: str | os.PathLike[str],
      config: T5Config | None = None,
  ):
    """Opens and checks a checkpoint; reads only what the index holds inline.

    Args:
      directory: the `checkpoint_<step>` directory.
      config: architecture of the model, None to infer it from the shapes.

    Raises:
      FileNotFoundError: there is no index.
      ValueError: a file is damaged, or the tensors are not the model's.
    """
    self._root = pathlib.Path(directory)
    files.check_links(self._root)
    target = _read_target(self._root / INDEX)
    self._tensors = {
        path: self._open(path, leaf) if isinstance(leaf, Mapping) else leaf
        for path, leaf in _leaves(target, ())
    }
    self.config = config or layout.infer_config(self.paths(), str(self._root))
    layout.check_specs(
        self.paths(), layout.parameter_shapes(self.config), str(self._root)
    )

  def _open(self, path: str, spec: Mapping[str, Any]) -> Any:
    """Opens a zarr array of this directory.

    Raises:
      ValueError: it is not there, or the spec is not one of T5X's.
    """
    # Before TensorStore 0.1.14 the path stood in the outer dict. Where files
    # were written from does not matter once they lie on this disk.
    match spec:
      case {
          "driver": "zarr",
          "kvstore": {"driver": "file" | "gfile" | "gcs", "path": str(name)},
      }:
        pass
      case {
          "driver": "zarr",
          "kvstore": {"driver": "file" | "gfile" | "gcs"},
          "path": str(name),
      }:
        pass
      case _:
        raise ValueError(
            f"`{path}` in {self._root} must be a zarr array in files. Got the"
            f" TensorStore spec {dict(spec)}."
        )
    directory = files.contained(self._root, name)
    with files.naming(path, self._root):
      # A lost chunk must not read as zeros.
      return tensorstore.open(
          {
              "driver": "zarr",
              "kvstore": {"driver": "file", "path": f"{directory}/"},
              "fill_missing_data_reads": False,
          },
          open=True,
      ).result()

  def paths(self) -> dict[str, TensorSpec]:
    """See `Reader.paths`."""
    return {
        path: TensorSpec(tuple(tensor.shape), tensor.dtype.name)
        for path, tensor in self._tensors.items()
    }

  def read(self, path: str) -> np.ndarray:
    """See `Reader.read`."""
    tensor = self._tensors[path]
    if isinstance(tensor, np.ndarray):
      return tensor
    with files.naming(path, self._root):
      return tensor.read().result()


def _read_target(index: pathlib.Path) -> Mapping[str, Any]:
  """Reads the tree of parameters off the index.

  Raises:
    ValueError: the file is no T5X index.
  """
  with files.naming(index.name, index.parent):
    content = serialization.msgpack_restore(index.read_bytes())
    # Version 0 is a bare optimizer state.
    target = content.get("optimizer", content)["target"]
    return dict(target)


def _leaves(
    node: Any, path: tuple[str, ...]
) -> Iterator[tuple[str, np.ndarray | Mapping[str, Any]]]:
  """Yields arrays and TensorStore specs of a tree by path."""
  is_spec = isinstance(node, Mapping) and "kvstore" in node
  if isinstance(node, Mapping) and not is_spec:
    for key, child in node.items():
      yield from _leaves(child, (*path, str(key)))
  else:
    yield "/".join(path), node if is_spec else np.asarray(node)


def write_legacy(
    directory: pathlib.Path, reader: Reader, dtype: np.dtype, step: int
) -> None:
  """Writes a checkpoint, one tensor at a time.

  Args:
    directory: where to; must be new or empty.
    reader: what to write.
    dtype: dtype to write.
    step: the training step to record.
  """
  with files.atomic_directory(directory) as temporary:
    specs = {}
    for path in reader.paths():
      value = reader.read(path).astype(dtype, copy=False)
      specs[path] = _write(temporary, path, value)
    # T5X cannot load an empty `param_states`, so there is none.
    state = {"step": np.int32(step)}
    optimizer = {"state": state, "target": layout.unflatten(specs)}
    content = {"version": _VERSION, "optimizer": optimizer}
    data = serialization.msgpack_serialize(content)
    (temporary / INDEX).write_bytes(data)


def _write(
    directory: pathlib.Path, path: str, value: np.ndarray
) -> dict[str, Any]:
  """Writes one zarr array; returns its spec relative to the directory."""
  name = ".".join(("target", *path.split("/"))) + "/"
  row_bytes = max(1, value.nbytes // len(value))
  rows = min(len(value), max(1, _CHUNK_BYTES // row_bytes))
  spec = {
      "driver": "zarr",
      "dtype": value.dtype.name,
      "kvstore": {"driver": "file", "path": name},
      "metadata": {
          "chunks": [rows, *value.shape[1:]],
          "compressor": {"id": "gzip", "level": 1},
          "shape": list(value.shape),
      },
  }
  store = {"driver": "file", "path": f"{directory / name}/"}
  array = tensorstore.open({**spec, "kvstore": store}, create=True).result()
  array.write(value).result()
  return spec

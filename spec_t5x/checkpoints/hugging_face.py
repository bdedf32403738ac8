"""Hugging Face T5 directories: `config.json`, `*.safetensors`, `spiece.model`.

Tensors stay on disk until they are read. Pickled weights (`*.bin`) are never
opened: loading them can run code.
"""

import json
import os
import pathlib
import shutil
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import safetensors
from safetensors.numpy import save_file

from spec_t5x import processes
from spec_t5x.checkpoints import files, hugging_face_config, layout, names
from spec_t5x.checkpoints.layout import TensorSpec
from spec_t5x.checkpoints.reader import Reader, as_reader
from spec_t5x.config import T5Config

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
VOCABULARY = "spiece.model"

_DTYPES = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}

# Rows of two tables compared at a time.
_ROWS = 4096


class HuggingFaceReader:
  """A Hugging Face T5 directory as a `Reader`.

  What `config.json` says of the output is settled together with the tensors.
  Scaled decoder outputs (T5 1.0) meet the embedding: an `lm_head` of other
  values raises. Unscaled ones (T5 1.1) meet `lm_head`, or the embedding where
  the file has no `lm_head`; either is shown as `decoder/logits_dense`.
  """

  def __init__(
      self,
      directory: str | os.PathLike[str],
      config: T5Config | None = None,
  ):
    """Opens and checks a directory; reads only copies of the embedding.

    Args:
      directory: its path.
      config: used in place of `config.json`.

    Raises:
      FileNotFoundError: a file is missing.
      ValueError: a file is damaged, or the tensors are not the model's.
    """
    self._root = pathlib.Path(directory)
    path = files.contained(self._root, CONFIG)
    fields = hugging_face_config.read_fields(path)
    self.config = config or hugging_face_config.parse(fields, str(path))
    vocabulary = files.contained(self._root, VOCABULARY)
    self.vocabulary = vocabulary if vocabulary.exists() else None
    self._files = _open_weights(self._root)
    self._names = self._tensor_names()

  def _tensor_names(self) -> dict[str, str]:
    """Checks all tensors; returns the one to read for each path."""
    decoder_only = self.config.decoder_only
    specs = {name: self._spec(name) for name in self._files}
    specs.pop(names.UNUSED, None)
    shapes = layout.parameter_shapes(self.config)
    found = {
        path: names.hugging_face_name(path, decoder_only) for path in shapes
    }
    tables = [name for name in names.EMBEDDING_ALIASES if name in specs]
    embedding, *aliases = tables or [names.EMBEDDING]
    found[layout.embedding_path(decoder_only)] = embedding
    if layout.LOGITS not in found:
      aliases += [names.LOGITS] if names.LOGITS in specs else []
    elif names.LOGITS not in specs:
      found[layout.LOGITS] = embedding
    copies = {alias: specs.pop(alias) for alias in aliases}
    expected = {
        found[path]: names.hugging_face_shape(path, shape)
        for path, shape in shapes.items()
    }
    layout.check_specs(specs, expected, str(self._root))
    for alias, spec in copies.items():
      self._check_copy(alias, embedding, spec == specs[embedding])
    return found

  def _spec(self, name: str) -> TensorSpec:
    view = self._files[name].get_slice(name)
    dtype = view.get_dtype()
    return TensorSpec(tuple(view.get_shape()), _DTYPES.get(dtype, dtype))

  def _check_copy(self, alias: str, name: str, same: bool) -> None:
    """Raises unless two tensors, of the `same` spec, have the same values."""
    if same:
      one, other = (self._files[n].get_slice(n) for n in (alias, name))
      rows = one.get_shape()[0]
      blocks = [(i, min(i + _ROWS, rows)) for i in range(0, rows, _ROWS)]
      same = all(np.array_equal(one[i:j], other[i:j]) for i, j in blocks)
    if not same:
      raise ValueError(
          f"`{alias}` in {self._root} must equal `{name}`, to which its config"
          " ties it. If it is a projection of its own, `config.json` must say"
          ' "tie_word_embeddings": false.'
      )

  def paths(self) -> dict[str, TensorSpec]:
    """See `Reader.paths`."""
    specs = {path: self._spec(name) for path, name in self._names.items()}
    return {
        path: TensorSpec(names.hugging_face_shape(path, spec.shape), spec.dtype)
        for path, spec in specs.items()
    }

  def read(self, path: str) -> np.ndarray:
    """See `Reader.read`."""
    name = self._names[path]
    with files.naming(name, self._root):
      value = self._files[name].get_tensor(name)
    return value.T if names.is_transposed(path) else value


def weight_files(root: pathlib.Path) -> dict[str, set[str]]:
  """Names the weights files, each with the tensors an index promises in it.

  Raises:
    FileNotFoundError: there are no weights, or a shard is missing.
    ValueError: the index is damaged, a file lies elsewhere or is pickled.
  """
  index = files.contained(root, INDEX)
  shards: dict[str, set[str]] = {}
  if files.contained(root, WEIGHTS).exists():
    shards[WEIGHTS] = set()
  elif index.exists():
    weight_map = hugging_face_config.read_fields(index).get("weight_map")
    if not isinstance(weight_map, dict):
      raise ValueError(f"`weight_map` in {index} must map tensors to files.")
    for tensor, shard in weight_map.items():
      shards.setdefault(str(shard), set()).add(tensor)
  elif any(root.glob("*.bin")):
    raise ValueError(
        f"{root} holds pickled weights only, which are never loaded. Convert"
        f" them to {WEIGHTS}."
    )
  for shard in shards or [WEIGHTS]:
    if not files.contained(root, shard).exists():
      raise FileNotFoundError(f"There is no {shard} in {root}.")
  return shards


def _open_weights(root: pathlib.Path) -> dict[str, Any]:
  """Opens the weights files; returns the one of each tensor.

  Raises:
    FileNotFoundError: see `weight_files`.
    ValueError: see `weight_files`, or a file is damaged.
  """
  tensors = {}
  for shard, promised in weight_files(root).items():
    with files.naming(shard, root):
      # Mapped pages would count as the process's memory.
      handle = safetensors.safe_open(root / shard, "np", backend="pread")
    absent = sorted(promised - set(handle.keys()))
    if absent:
      raise ValueError(
          f"`{absent[0]}` should be in {root / shard}, says {INDEX}."
      )
    tensors |= dict.fromkeys(handle.keys(), handle)
  return tensors


def save_hugging_face(
    directory: str | os.PathLike[str],
    config: T5Config,
    params: Mapping[str, Any] | Reader,
    dtype: str = "bfloat16",
    max_shard_bytes: int = 2**32,
    vocabulary: str | os.PathLike[str] | None = None,
) -> pathlib.Path:
  """Writes a Hugging Face T5 directory, at most one shard in memory.

  In a job of several processes all must call it, and the first one writes.

  Args:
    directory: where to; must be new or empty.
    config: architecture of the model.
    params: nested dict of arrays under T5X's names, or an open checkpoint,
      which is streamed.
    dtype: dtype to write, 'float32' or 'bfloat16'.
    max_shard_bytes: size of a weights file; only a single tensor may exceed.
    vocabulary: SentencePiece file to copy along.

  Returns:
    The directory.

  Raises:
    FileNotFoundError: there is no `vocabulary` file.
    ValueError: `params` do not fit `config`, a T5 of Hugging Face has no such
      architecture, or the directory is not empty.
  """
  reader = as_reader(params, config)
  target_dtype = layout.parameter_dtype(dtype)
  fields = hugging_face_config.render(config, dtype)
  if max_shard_bytes < 1:
    raise ValueError(
        f"`max_shard_bytes` must be positive. Got {max_shard_bytes}."
    )
  shapes = layout.parameter_shapes(config)
  sizes = {
      path: int(np.prod(shape)) * target_dtype.itemsize
      for path, shape in shapes.items()
  }
  shards = _shards(sizes, max_shard_bytes)
  if not processes.is_first():
    # Parts of each tensor may be here.
    for path in shapes:
      reader.read(path)
    return pathlib.Path(directory)
  with files.atomic_directory(directory) as temporary:
    _write_json(temporary / CONFIG, fields)
    if vocabulary is not None:
      shutil.copyfile(vocabulary, temporary / VOCABULARY)
    weight_map = {}
    for number, paths in enumerate(shards, 1):
      file = _shard_name(number, len(shards))
      tensors = _tensors(reader, paths, config.decoder_only, target_dtype)
      weight_map |= dict.fromkeys(tensors, file)
      save_file(tensors, temporary / file, metadata={"format": "pt"})
    if len(shards) > 1:
      metadata = {"total_size": sum(sizes.values())}
      index = {"metadata": metadata, "weight_map": weight_map}
      _write_json(temporary / INDEX, index)
  return pathlib.Path(directory)


def _shards(sizes: Mapping[str, int], limit: int) -> list[list[str]]:
  """Cuts the tensors into runs of at most `limit` bytes."""
  shards: list[list[str]] = []
  filled = limit
  for path, size in sizes.items():
    if filled + size > limit:
      shards.append([])
      filled = 0
    shards[-1].append(path)
    filled += size
  return shards


def _shard_name(number: int, total: int) -> str:
  if total == 1:
    return WEIGHTS
  stem, suffix = WEIGHTS.split(".")
  return f"{stem}-{number:05d}-of-{total:05d}.{suffix}"


def _tensors(
    reader: Reader, paths: Iterable[str], decoder_only: bool, dtype: np.dtype
) -> dict[str, np.ndarray]:
  """Reads tensors under Hugging Face's names, axes and the given dtype."""
  tensors = {}
  for path in paths:
    value = reader.read(path)
    value = value.T if names.is_transposed(path) else value
    name = names.hugging_face_name(path, decoder_only)
    tensors[name] = np.ascontiguousarray(value, dtype=dtype)
  return tensors


def _write_json(path: pathlib.Path, fields: Mapping[str, Any]) -> None:
  path.write_text(json.dumps(fields, indent=2, sort_keys=True) + "\n")

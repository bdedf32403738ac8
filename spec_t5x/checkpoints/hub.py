"""Finding weights by directory or by their name on the Hugging Face hub."""

import os
import pathlib
import re

from spec_t5x.checkpoints import hugging_face

# Weights in safetensors only: a pickle can run code.
PATTERNS = (
    hugging_face.CONFIG,
    "model*.safetensors",
    hugging_face.INDEX,
    hugging_face.VOCABULARY,
)

# The T5 1.0 models are known by their last name alone.
_T5 = re.compile(r"t5-(small|base|large|3b|11b)")


def resolve(
    name_or_path: str | os.PathLike[str],
    cache_dir: str | os.PathLike[str] | None = None,
) -> pathlib.Path:
  """Returns the directory of a checkpoint, downloading it if need be.

  A directory on disk comes first, then a complete copy in the hub's cache,
  for which no network is used, then the hub.

  Args:
    name_or_path: a directory, or a hub name such as "google/flan-t5-small";
      "t5-small" to "t5-11b" are those of T5 1.0.
    cache_dir: the hub's cache; None for its default place.

  Raises:
    FileNotFoundError: the checkpoint is in none of these places.
  """
  path = pathlib.Path(name_or_path)
  if path.exists():
    return path
  name = os.fspath(name_or_path)
  if _T5.fullmatch(name):
    name = f"google-t5/{name}"
  if not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", name):
    raise FileNotFoundError(
        f"There is no directory {name}, and a hub name has the form"
        " organization/name."
    )
  import huggingface_hub
  from huggingface_hub import constants

  cache = cache_dir or constants.HF_HUB_CACHE
  reasons = []
  for local_files_only in (True, False):
    try:
      snapshot = huggingface_hub.snapshot_download(
          name,
          cache_dir=cache,
          allow_patterns=list(PATTERNS),
          local_files_only=local_files_only,
      )
      return _complete(pathlib.Path(snapshot))
    except Exception as error:  # The network fails in ways beyond counting.
      reasons.append(error)
  raise FileNotFoundError(
      f"`{name}` is no directory, is not complete in the cache {cache}"
      f" ({reasons[0]}) and could not be downloaded ({reasons[1]})."
  ) from reasons[1]


def _complete(snapshot: pathlib.Path) -> pathlib.Path:
  """Returns a directory that has a configuration and all its weights.

  Raises:
    FileNotFoundError: it has not.
  """
  if not (snapshot / hugging_face.CONFIG).exists():
    raise FileNotFoundError(f"There is no {hugging_face.CONFIG} in {snapshot}.")
  hugging_face.weight_files(snapshot)
  return snapshot

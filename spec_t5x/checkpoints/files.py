"""Where a checkpoint may read and how it is written: inside, and whole."""

import contextlib
import os
import pathlib
import shutil
import uuid
from collections.abc import Iterator


def checkpoint_directory(path: str | os.PathLike[str]) -> pathlib.Path:
  """Returns `path` as a directory that exists.

  Raises:
    FileNotFoundError: there is nothing at `path`.
    ValueError: there is a file.
  """
  path = pathlib.Path(path)
  if not path.exists():
    raise FileNotFoundError(f"There is no checkpoint directory {path}.")
  if not path.is_dir():
    raise ValueError(f"A checkpoint must be a directory. Got the file {path}.")
  return path


def _boundaries(root: pathlib.Path) -> tuple[pathlib.Path, ...]:
  """Directories that files of the checkpoint `root` may lie in."""
  real = root.resolve()
  model = real.parent.parent
  if real.parent.name == "snapshots" and model.name.startswith("models--"):
    # A snapshot in the Hugging Face cache is made of links into the blobs of
    # its model, or into those that models of one cache share.
    return (model, model.parent / "blobs")
  return (real,)


def contained(root: pathlib.Path, name: str) -> pathlib.Path:
  """Returns the path of a checkpoint's file, which may not exist.

  Args:
    root: directory of the checkpoint.
    name: path of the file relative to `root`, from an untrusted source.

  Raises:
    ValueError: the path leads out of the checkpoint, by itself or by a link.
  """
  path = root / name
  inside = any(path.resolve().is_relative_to(b) for b in _boundaries(root))
  if not inside or ".." in pathlib.PurePath(name).parts:
    raise ValueError(f"`{name}` leads out of the checkpoint {root}.")
  return path


def check_links(root: pathlib.Path) -> None:
  """Checks that no link anywhere under `root` leads out of it.

  Raises:
    ValueError: one does.
  """
  for directory, folders, names in os.walk(root):
    for name in (*folders, *names):
      path = pathlib.Path(directory, name)
      if path.is_symlink():
        contained(root, str(path.relative_to(root)))


@contextlib.contextmanager
def naming(what: str, where: str | os.PathLike[str]) -> Iterator[None]:
  """Gives errors of file libraries the name of what could not be read.

  Args:
    what: tensor or file.
    where: checkpoint or directory.

  Raises:
    ValueError: the block raised anything.
  """
  try:
    yield
  except Exception as error:  # Bad bytes raise a dozen types.
    raise ValueError(
        f"`{what}` in {where} is missing or damaged: {error!r}."
    ) from error


def new_directory(directory: str | os.PathLike[str]) -> pathlib.Path:
  """Returns the absolute path of a checkpoint to be written.

  Raises:
    ValueError: there is something in it.
  """
  path = pathlib.Path(directory).resolve()
  if path.exists() and not (path.is_dir() and not any(path.iterdir())):
    raise ValueError(
        f"A checkpoint is written to a new or empty directory. Got {path}."
    )
  return path


@contextlib.contextmanager
def atomic_directory(
    directory: str | os.PathLike[str],
) -> Iterator[pathlib.Path]:
  """Yields a directory to fill, which then becomes `directory` at once.

  A reader never sees a part of a checkpoint, and a failure leaves nothing.

  Raises:
    ValueError: `directory` is not empty.
  """
  final = new_directory(directory)
  temporary = final.parent / f".{final.name}.tmp-{uuid.uuid4().hex[:8]}"
  temporary.mkdir(parents=True)
  try:
    yield temporary
    temporary.rename(final)
  except BaseException:
    shutil.rmtree(temporary, ignore_errors=True)
    raise

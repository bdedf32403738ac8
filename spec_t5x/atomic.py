"""Writing files that a kill at any moment leaves as they were, or whole."""

import os
import pathlib
from collections.abc import Iterable


def write(path: str | os.PathLike[str], chunks: Iterable[bytes]) -> None:
  """Replaces a file; a reader sees the old content or all of the new."""
  path = pathlib.Path(path)
  temporary = path.with_name(f".{path.name}.tmp")
  with temporary.open("wb") as file:
    file.writelines(chunks)
    file.flush()
    os.fsync(file.fileno())
  temporary.replace(path)


def write_text(path: str | os.PathLike[str], text: str) -> None:
  """Replaces a file's content by a text in UTF-8."""
  write(path, [text.encode("utf-8")])

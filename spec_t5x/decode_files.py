"""Files of a decode job: inputs, finished batches, outputs."""

import fcntl
import hashlib
import json
import os
import pathlib
from typing import Any, NamedTuple

from spec_t5x import processes
from spec_t5x.types import PAD_ID


class Inputs(NamedTuple):
  """What a job decodes, one entry per line of the file.

  Attributes:
    path: the file.
    entries: texts, or token ids.
    sha256: of the file's bytes.
  """

  path: str
  entries: list[str] | list[list[int]]
  sha256: str

  @property
  def are_texts(self) -> bool:
    """Whether the entries are texts."""
    return isinstance(self.entries[0], str)


def read_inputs(path: str | os.PathLike[str]) -> Inputs:
  r"""Reads one text a line, or JSON lines `{"tokens": [...]}`.

  The first line tells which; lines end in "\n" or "\r\n" alone, and an empty
  line is an empty text.

  Args:
    path: a file in UTF-8.

  Raises:
    FileNotFoundError: there is no file.
    ValueError: the file is empty, or a line is malformed; names the line.
  """
  content = pathlib.Path(path).read_bytes()
  lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
  if not lines[-1]:
    lines.pop()
  if not lines:
    raise ValueError(f"`inputs` must hold at least one line. {path} is empty.")
  texts = []
  for number, line in enumerate(lines, 1):
    try:
      texts.append(line.removesuffix(b"\r").decode("utf-8"))
    except UnicodeDecodeError as error:
      raise ValueError(f"{path}, line {number}: {error}.") from error
  entries = texts
  if "tokens" in (_parse_object(texts[0]) or {}):
    entries = [_tokens(path, *line) for line in enumerate(texts, 1)]
  return Inputs(str(path), entries, hashlib.sha256(content).hexdigest())


def check_inputs(inputs: Inputs, num_ids: int, has_vocabulary: bool) -> None:
  """Checks that a model can read the inputs.

  Args:
    inputs: texts or token ids.
    num_ids: ids must be below this.
    has_vocabulary: whether the model can read texts.

  Raises:
    ValueError: it cannot; names the line.
  """
  if inputs.are_texts:
    if not has_vocabulary:
      raise ValueError(
          f'{inputs.path}, line 1: must be {{"tokens": [...]}}, as the target'
          f" has no vocabulary. Got {inputs.entries[0][:40]!r}."
      )
    return
  for number, ids in enumerate(inputs.entries, 1):
    bad = [token for token in ids if not PAD_ID < token < num_ids]
    if bad:
      raise ValueError(
          f"{inputs.path}, line {number}: `tokens` must be ids in"
          f" [1, {num_ids}), without padding. Got {bad[0]}."
      )


def _parse_object(line: str | bytes) -> dict[str, Any] | None:
  """Returns a JSON object, None for anything else."""
  try:
    value = json.loads(line)
  except ValueError:
    return None
  return value if isinstance(value, dict) else None


def _tokens(path, number: int, line: str) -> list[int]:
  tokens = (_parse_object(line) or {}).get("tokens")
  is_id = lambda x: isinstance(x, int) and not isinstance(x, bool)
  if not isinstance(tokens, list) or not all(map(is_id, tokens)):
    raise ValueError(
        f'{path}, line {number}: must be {{"tokens": [...]}} with integers, as'
        f" line 1 is of that form. Got {line[:40]!r}."
    )
  return tokens


class PartialFile:
  """Finished batches of a run that may be killed at any moment.

  One JSON line a batch behind a first line with the run's settings. A batch is
  on the disk when `append` returns, and what a kill left of a line is dropped
  when the file is opened again. The file is the first process' own; the others
  learn what is in it.

  Attributes:
    path: the file.
    batches: all batches in it, in the order in which they were finished.
  """

  def __init__(
      self, path: str | os.PathLike[str], settings: dict[str, Any]
  ) -> None:
    """Opens or creates the file.

    Args:
      path: the file.
      settings: what all its batches must have been decoded with.

    Raises:
      ValueError: the file has batches of other settings, is in use, or is
        damaged.
    """
    self.path = pathlib.Path(path)
    self._file = None
    self.batches = processes.on_first(lambda: self._open(settings))

  def append(self, line: dict[str, Any]) -> None:
    """Writes a line; it is on the disk afterwards."""
    if self._file:
      self._file.write(json_line(line))
      self._file.flush()
      os.fsync(self._file.fileno())

  def remove(self) -> None:
    """Removes the file."""
    if self._file:
      self.path.unlink()
    self.close()

  def close(self) -> None:
    """Lets another run open the file."""
    if self._file:
      self._file.close()

  def _open(self, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Locks and reads the file, or creates it."""
    self._file = open(self.path, "a+b")
    try:
      fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
      return self._resume(settings)
    except BlockingIOError as error:
      self.close()
      raise ValueError(f"{self.path} is in use by another run.") from error
    except ValueError:
      self.close()
      raise

  def _resume(self, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the batches, or writes the first line of a new file."""
    lines, end = [], 0
    self._file.seek(0)
    for line in self._file:
      value = _parse_object(line) if line.endswith(b"\n") else None
      if value is None:
        break
      lines.append(value)
      end += len(line)
    if self._file.read(1):
      raise ValueError(
          f"{self.path}, line {len(lines) + 1}, is damaged."
          " Delete the file to start anew."
      )
    if len(lines) > 1:
      check_settings(self.path, lines[0], settings)
      self._file.truncate(end)
    else:
      # Nothing is lost, whatever the settings were.
      self._file.truncate(0)
      self.append(settings)
    return lines[1:]


def check_settings(
    path: str | os.PathLike[str],
    found: dict[str, Any],
    settings: dict[str, Any],
) -> None:
  """Checks that a file was written with given settings.

  Args:
    path: the file.
    found: its settings, from JSON.
    settings: those expected.

  Raises:
    ValueError: they differ; names what differs.
  """
  # JSON has lists where Python has tuples.
  settings = json.loads(json.dumps(settings))
  differ = [
      f"`{name}` was {found.get(name)!r} and is {settings.get(name)!r}"
      for name in sorted({*found, *settings})
      if found.get(name) != settings.get(name)
  ]
  if differ:
    raise ValueError(
        f"{path} is of another run: {', '.join(differ)}. Delete the file to"
        " start anew, or name other `outputs`."
    )


def json_line(value: Any) -> bytes:
  """Returns a value as one line of JSON in UTF-8."""
  return json.dumps(value, ensure_ascii=False).encode("utf-8") + b"\n"

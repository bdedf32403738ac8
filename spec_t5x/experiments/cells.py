"""Measured cells on disk, by name: whole or absent, never half written."""

import functools
import json
import os
import pathlib
from collections.abc import Iterable
from typing import Any

from spec_t5x import atomic


def outputs_name(temperature: float) -> str:
  """Names the cell of the texts that the target generated."""
  return f"outputs-t{temperature:g}"


def alpha_name(draft: str, temperature: float, lenience: float = 1.0) -> str:
  """Names the cell of a draft's overlaps with the target."""
  return f"alpha-{draft}-t{temperature:g}{_suffix(lenience)}"


def quality_name(draft: str, temperature: float, lenience: float = 1.0) -> str:
  """Names the cell of the same texts, generated with a draft."""
  return f"quality-{draft}-t{temperature:g}{_suffix(lenience)}"


def cost_name(draft: str) -> str:
  """Names the cell of the seconds of model calls."""
  return f"cost-{draft}"


def trace_name(draft: str, temperature: float) -> str:
  """Names the cell of a traced text."""
  return f"trace-{draft}-t{temperature:g}"


def walltime_name(
    draft: str, temperature: float, gamma: int, lenience: float = 1.0
) -> str:
  """Names the cell of timed decodes; lenient ones begin otherwise."""
  begin = "walltime" if lenience == 1 else "lenient"
  return f"{begin}-{draft}-t{temperature:g}-g{gamma}{_suffix(lenience)}"


def _suffix(lenience: float) -> str:
  return "" if lenience == 1 else f"-l{lenience:g}"


class CellStore:
  """One directory of JSON-lines files.

  The first line of a cell is a dict about the whole cell; the lines behind it
  are raw counts and seconds, one per example. A cell is written when it is
  finished, so a sweep that was killed carries on behind the last whole cell.
  """

  def __init__(self, directory: str | os.PathLike[str]):
    """Opens or makes the directory."""
    self.directory = pathlib.Path(directory)
    self.directory.mkdir(parents=True, exist_ok=True)

  def _path(self, name: str) -> pathlib.Path:
    return self.directory / f"{name}.jsonl"

  def __contains__(self, name: str) -> bool:
    """Whether the cell is finished."""
    return self._path(name).exists()

  def names(self, prefix: str = "") -> list[str]:
    """Names of the finished cells that begin with `prefix`, sorted."""
    return sorted(path.stem for path in self.directory.glob(f"{prefix}*.jsonl"))

  def write(
      self,
      name: str,
      about: dict[str, Any],
      rows: Iterable[dict[str, Any]] = (),
  ) -> None:
    """Writes a finished cell, atomically.

    Raises:
      ValueError: a number is not finite.
    """
    dump = functools.partial(json.dumps, sort_keys=True, allow_nan=False)
    lines = [dump(record) + "\n" for record in (about, *rows)]
    atomic.write_text(self._path(name), "".join(lines))

  def read(self, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Reads a cell: what it is about, and its rows.

    Raises:
      FileNotFoundError: the cell is not finished.
    """
    path = self._path(name)
    if not path.exists():
      raise FileNotFoundError(f"The cell {path} is not finished.")
    about, *rows = map(json.loads, path.read_text("utf-8").splitlines())
    return about, rows

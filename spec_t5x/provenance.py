"""Where a result comes from: code, weights, data, machine."""

import dataclasses
import datetime
import hashlib
import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import jax

from spec_t5x import atomic, processes

_PACKAGES = ("jax", "jaxlib", "flax", "numpy", "sentencepiece", "sacrebleu")
_ROOT = pathlib.Path(__file__).parents[1]
# A list longer than this is data, not a setting.
_LONG = 100
_PLAIN = (int, float, bool, type(None))

# What may be another when a run goes on.
_MAY_CHANGE = ("commit", "dirty", "command", "versions", "device", "xla_flags")

# File of a training's starts, beside its curve.
STARTS_NAME = "provenance.jsonl"

# Clouds call generations of processors by one name, and a step of one may take
# three times as long as of another. The widest vectors first.
_VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2"}


def _git(*arguments: str) -> str | None:
  try:
    done = subprocess.run(
        ["git", *arguments],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
  except (OSError, subprocess.CalledProcessError):
    return None
  return done.stdout.strip()


def _processor(info: pathlib.Path = pathlib.Path("/proc/cpuinfo")) -> str:
  """The processor's name and vectors, where the system tells them."""
  lines = info.read_text().splitlines() if info.exists() else []
  fields = {
      name.strip(): value.strip()
      for name, _, value in (line.partition(":") for line in lines)
  }
  flags = fields.get("flags", "").split()
  vectors = [label for flag, label in _VECTORS.items() if flag in flags]
  name = fields.get("model name") or platform.processor() or platform.machine()
  return ", ".join([name, *vectors[:1]])


def device_name() -> str:
  """One line on what the numbers were measured on."""
  if jax.default_backend() == "cpu":
    return f"{os.cpu_count()} cores, {_processor()}"
  return f"{jax.device_count()} x {jax.devices()[0].device_kind}"


def weights_hash(*paths: str | os.PathLike[str]) -> str:
  """SHA-256 over the files of weights, by name and content.

  Args:
    *paths: directories and files; one, but for a model with a list of tokens.

  Raises:
    FileNotFoundError: there is nothing at a path.
  """
  digest = hashlib.sha256()
  for root in map(pathlib.Path, paths):
    if not root.exists():
      raise FileNotFoundError(f"There are no weights {root}.")
    tree = [root] if root.is_file() else root.rglob("*")
    for path in sorted(p for p in tree if p.is_file()):
      digest.update(path.relative_to(root).as_posix().encode())
      with path.open("rb") as file:
        digest.update(hashlib.file_digest(file, "sha256").digest())
  return digest.hexdigest()


def facts() -> dict[str, Any]:
  """Code, command and machine, as they are now."""
  # Files that are not tracked are code that no commit has, results apart.
  status = _git("status", "--porcelain", "--", ".", ":(exclude)results")
  return {
      "commit": _git("rev-parse", "HEAD"),
      "dirty": None if status is None else bool(status),
      "command": [pathlib.Path(sys.argv[0]).name, *sys.argv[1:]],
      "versions": {
          "python": platform.python_version(),
          **{name: importlib.metadata.version(name) for name in _PACKAGES},
      },
      "device": device_name(),
      "xla_flags": os.environ.get("XLA_FLAGS", ""),
      "started": (
          datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
      ),
  }


def collect(
    models: dict[str, Sequence[os.PathLike[str]]],
    data: dict[str, Any],
    seed: int,
    dtype: str,
) -> dict[str, Any]:
  """Returns what a reader needs to repeat a run.

  Args:
    models: role to weights directories and files.
    data: what was decoded: task, split, number of texts.
    seed: of all random numbers.
    dtype: of parameters and activations.
  """
  return {
      **facts(),
      "seed": seed,
      "dtype": dtype,
      "weights_sha256": {
          role: weights_hash(*paths) for role, paths in models.items()
      },
      "data": data,
  }


def note(directory: pathlib.Path, record: dict[str, Any]) -> None:
  """Writes `provenance.json`, or checks that it fits cells measured before.

  A run that goes on with other code, versions or machine is added to it, under
  `resumed`, with the number of cells that were there.

  Args:
    directory: of the run.
    record: what `collect` returned, and `settings`.

  Raises:
    ValueError: the directory holds cells of other settings or weights.
  """
  # JSON has lists where Python has tuples.
  record = json.loads(json.dumps(record))
  path = directory / "provenance.json"
  if not path.exists():
    atomic.write_text(path, json.dumps(record, indent=2) + "\n")
    return
  known = json.loads(path.read_text("utf-8"))
  changed = [
      name
      for part in ("settings", "weights_sha256")
      for name in sorted({*known[part], *record[part]})
      if known[part].get(name) != record[part].get(name)
  ]
  if changed:
    raise ValueError(
        f"{directory} holds cells of other settings or weights ({changed})."
        " Name another run or delete it."
    )
  last = known.get("resumed", [known])[-1]
  if any(record.get(name) != last.get(name) for name in _MAY_CHANGE):
    now = {name: record.get(name) for name in (*_MAY_CHANGE, "started")}
    now["cells"] = len(list(directory.glob("cells/*")))
    known.setdefault("resumed", []).append(now)
    atomic.write_text(path, json.dumps(known, indent=2) + "\n")


def describe(value: Any) -> Any:
  """What settings are, for JSON.

  Dataclasses become their fields, beside the name of their class. A long list,
  such as examples in memory, is told by its length and the hash of its content.
  """
  if dataclasses.is_dataclass(value):
    fields = [field.name for field in dataclasses.fields(value)]
    values = {name: describe(getattr(value, name)) for name in fields}
    return {"class": type(value).__name__, **values}
  if isinstance(value, list | tuple):
    if len(value) <= _LONG:
      return list(map(describe, value))
    content = json.dumps(value, default=str).encode()
    return {"length": len(value), "sha256": hashlib.sha256(content).hexdigest()}
  if isinstance(value, _PLAIN):
    return value
  # Where the package lies on this machine tells nothing.
  return str(value).removeprefix(f"{_ROOT}{os.sep}")


class Starts:
  """The starts of a training, one JSON object a line of `provenance.jsonl`.

  A line has the step that was begun from, what `facts` tells, and settings. It
  is written with the first step, so a start that came to nothing leaves none.
  """

  def __init__(self, directory: pathlib.Path, about: dict[str, Any]):
    """Takes the facts as they are now.

    Args:
      directory: of the run.
      about: settings of this start, as JSON has them.
    """
    self._path = directory / STARTS_NAME
    self._record = {**facts(), **about}
    self._is_noted = False

  def note(self, step: int) -> None:
    """Appends the line when it is first called.

    In a job of several processes the first one does.

    Args:
      step: that was taken last, counted from 1.
    """
    if self._is_noted or not processes.is_first():
      return
    self._is_noted = True
    known = self._path.read_text("utf-8") if self._path.exists() else ""
    line = json.dumps({"start_step": step - 1, **self._record})
    atomic.write_text(self._path, f"{known}{line}\n")

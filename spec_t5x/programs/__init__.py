"""Runs programs that a model wrote, each in a process of its own.

A program never runs in this process. Its own has limits of time and memory,
an empty directory and an empty environment. It has the standard library alone
and can write no file, start no process or thread, signal no process and open
no socket (see `confined`, which tells how). This contains the accidents of a
model. An adversary could still read files, against which a container helps,
and make a wrong answer pass for a right one.
"""

import dataclasses
import enum
import json
import math
import pathlib
import secrets
import subprocess
import sys
import tempfile

__all__ = ["DEFAULT_LIMITS", "Limits", "Outcome", "run"]

_CONFINED = pathlib.Path(__file__).with_name("confined.py")
# Of Python's own options, -E and -I would ignore the seed of hashes.
_PYTHON = (sys.executable, "-S", "-s", "-P", "-B", str(_CONFINED))
_ENVIRONMENT = {"PYTHONHASHSEED": "0"}
_READY = "ready\n"


class Outcome(enum.Enum):
  """How a program ended."""

  PASSED = "passed"
  FAILED = "failed"
  TIMED_OUT = "timed out"


@dataclasses.dataclass(frozen=True)
class Limits:
  """What a program may use.

  Attributes:
    seconds: on the clock.
    memory_bytes: of address space, Python's own included.
  """

  seconds: float = 10.0
  memory_bytes: int = 1 << 30

  def __post_init__(self):
    """Checks the limits."""
    if not 0 < self.seconds < math.inf:
      raise ValueError(
          f"`seconds` must be above 0 and finite. Got {self.seconds}."
      )
    if self.memory_bytes < 1 << 26:
      raise ValueError(
          "`memory_bytes` must be at least 64 MiB, which Python itself takes."
          f" Got {self.memory_bytes}."
      )


DEFAULT_LIMITS = Limits()


def run(program: str, limits: Limits = DEFAULT_LIMITS) -> Outcome:
  """Runs a program and tells whether it reached its last line.

  Only that counts: a program that leaves before, by `sys.exit(0)` or
  `os._exit(0)` too, has failed.

  Args:
    program: Python source.
    limits: what it may use.

  Raises:
    RuntimeError: the process could not be confined, so nothing was run.
  """
  # Nothing that a program prints or returns by accident is this word. It is no
  # secret: it lies in the memory of the program's own process, where one that
  # means to deceive finds it, for instance in the frames that called it.
  word = secrets.token_hex(16)
  order = json.dumps(
      {"program": program, "word": word, **dataclasses.asdict(limits)}
  )
  with (
      tempfile.TemporaryDirectory() as directory,
      tempfile.TemporaryFile("w+", encoding="utf-8") as verdict,
  ):
    try:
      subprocess.run(
          _PYTHON,
          input=order.encode(),
          stdout=verdict,
          stderr=subprocess.STDOUT,
          cwd=directory,
          env=_ENVIRONMENT,
          timeout=limits.seconds,
          check=False,
      )
      timed_out = False
    except subprocess.TimeoutExpired:
      timed_out = True
    verdict.seek(0)
    return _outcome(verdict.read(), word, timed_out)


def _outcome(verdict: str, word: str, timed_out: bool) -> Outcome:
  if timed_out:
    return Outcome.TIMED_OUT
  if not verdict.startswith(_READY):
    raise RuntimeError(f"A program's process could not be confined: {verdict}")
  passed = verdict == _READY + word
  return Outcome.PASSED if passed else Outcome.FAILED

"""Tests of the processes that programs run in: what they pass and forbid."""

import os
import pathlib
import subprocess
import sys
import time

import pytest

from spec_t5x import programs
from spec_t5x.programs import Limits, Outcome, confined

# Long enough for Python to start on a busy machine.
PATIENT = Limits(seconds=60)
HASTY = Limits(seconds=1)

HAS_LANDLOCK = sys.platform == "linux" and (
    confined._LIBC.syscall(444, None, 0, 1) >= 1
)
pytestmark = pytest.mark.skipif(
    not HAS_LANDLOCK, reason="Programs are confined by Landlock."
)


def test_a_program_that_ends_has_passed():
  program = """
import collections, dataclasses, functools, hashlib, math, random, re, typing
assert math.isclose(0.1 + 0.2, 0.3)
if __name__ == "__main__":
  print("ä")
"""
  assert programs.run(program, PATIENT) is Outcome.PASSED


@pytest.mark.parametrize(
    "program",
    [
        "assert 1 + 1 == 3",
        "def f(:",
        "import sys; sys.exit(0)",
        "import os; os._exit(0)",
        "import os; os.abort()",
        "print('ready'); raise SystemExit",
        # Not its verdict to give.
        "import os\nfor i in range(9):\n  os.write(i, b'ready')\nos._exit(0)",
        "def f(): f()\nf()",
    ],
)
def test_other_programs_have_failed(program):
  assert programs.run(program, PATIENT) is Outcome.FAILED


@pytest.mark.parametrize(
    "program",
    [
        "while True: pass",
        "import time; time.sleep(1000)",
        "while True: print('x' * 10**6)",
        # What it catches does not save it.
        "while True:\n  try:\n    pass\n  except BaseException:\n    pass",
    ],
)
def test_time_is_limited_whatever_is_printed(program):
  started = time.monotonic()
  assert programs.run(program, HASTY) is Outcome.TIMED_OUT
  assert time.monotonic() - started < 20


def test_memory_is_limited():
  program = "x = bytearray({})"
  limits = Limits(seconds=60, memory_bytes=1 << 27)
  assert programs.run(program.format(1 << 28), limits) is Outcome.FAILED
  # A control: half of the limit is not too much.
  assert programs.run(program.format(1 << 26), limits) is Outcome.PASSED


def attempts(*statements):
  """A program that passes iff the system refuses every statement."""
  lines = ["import os, pathlib, signal, socket, subprocess, threading"]
  for statement in statements:
    lines += [
        "try:",
        f"  {statement}",
        "except (PermissionError, RuntimeError):",
        "  pass",
        "else:",
        f"  raise AssertionError({statement!r})",
    ]
  return "\n".join(lines)


def test_no_process_thread_signal_or_socket():
  program = attempts(
      "os.fork()",
      "os.execv('/bin/true', ['true'])",
      "subprocess.run(['/bin/true'], check=False)",
      "threading.Thread(target=print).start()",
      "os.kill(os.getppid(), signal.SIGTERM)",
      "os.kill(0, signal.SIGKILL)",
      "socket.socket()",
  )
  assert programs.run(program, PATIENT) is Outcome.PASSED


def test_a_fork_bomb_makes_no_process():
  before = len(os.listdir("/proc"))
  bomb = "import os\nwhile True:\n  try:\n    os.fork()\n  except OSError: pass"
  assert programs.run(bomb, HASTY) is Outcome.TIMED_OUT
  assert len(os.listdir("/proc")) < before + 100


def test_files_are_not_made_written_or_removed(tmp_path):
  kept = tmp_path / "kept"
  kept.write_text("as it was")
  mode = kept.stat().st_mode
  program = attempts(
      "open('here', 'w')",
      f"open({str(kept)!r}, 'a')",
      f"os.truncate({str(kept)!r}, 0)",
      f"os.remove({str(kept)!r})",
      f"os.rename({str(kept)!r}, {str(tmp_path / 'other')!r})",
      f"os.chmod({str(kept)!r}, 0)",
      f"os.mkdir({str(tmp_path / 'new')!r})",
      f"os.symlink('x', {str(tmp_path / 'link')!r})",
  )
  assert programs.run(program, PATIENT) is Outcome.PASSED
  assert [path.name for path in tmp_path.iterdir()] == ["kept"]
  assert kept.read_text() == "as it was"
  assert kept.stat().st_mode == mode


def test_without_the_rules_the_attempts_succeed(tmp_path):
  """A control: the programs of the tests above do notice."""
  for statement in ("os.fork()", "socket.socket()", "open('here', 'w')"):
    done = subprocess.run(
        [sys.executable, "-S", "-c", attempts(statement)],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert b"AssertionError" in done.stderr


def test_nothing_is_inherited(monkeypatch, tmp_path):
  monkeypatch.setenv("SECRET", "x")
  monkeypatch.chdir(tmp_path)
  (tmp_path / "helper.py").write_text("")
  program = """
import os, sys
assert os.listdir() == []
assert not {"SECRET", "PATH", "HOME"} & set(os.environ), os.environ
assert not any("site-packages" in path for path in sys.path)
for name in ("helper", "spec_t5x", "numpy"):
  try:
    __import__(name)
  except ModuleNotFoundError:
    continue
  raise AssertionError(name)
"""
  assert programs.run(program, PATIENT) is Outcome.PASSED


def test_hashes_are_the_same_in_every_run():
  program = f"assert hash('a') == {_hash_of_a()}"
  assert programs.run(program, PATIENT) is Outcome.PASSED


def _hash_of_a():
  done = subprocess.run(
      [sys.executable, "-c", "print(hash('a'))"],
      env={"PYTHONHASHSEED": "0"},
      capture_output=True,
      check=True,
  )
  return int(done.stdout)


def test_a_process_that_cannot_be_confined_runs_nothing(monkeypatch, tmp_path):
  marker = tmp_path / "ran"
  broken = tmp_path / "confined.py"
  source = pathlib.Path(confined.__file__).read_text("utf-8")
  broken.write_text(
      source.replace(
          "_CREATE_RULESET, _RESTRICT_SELF = 444",
          "_CREATE_RULESET, _RESTRICT_SELF = 9999",
      )
  )
  monkeypatch.setattr(
      programs, "_PYTHON", (*programs._PYTHON[:-1], str(broken))
  )
  with pytest.raises(RuntimeError, match="could not be confined"):
    programs.run(f"open({str(marker)!r}, 'w')", PATIENT)
  assert not marker.exists()


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"seconds": 0}, "`seconds` must be above 0 and finite. Got 0"),
        ({"seconds": float("inf")}, "`seconds` must be above 0 and finite"),
        ({"memory_bytes": 10}, "`memory_bytes` must be at least 64 MiB"),
    ],
)
def test_bad_limits_are_named(limits, message):
  with pytest.raises(ValueError, match=message):
    Limits(**limits)

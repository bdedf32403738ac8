"""Tests of jobs in several processes: the tokens of one device, one writer."""

import json
import os
import pathlib
import socket
import subprocess
import sys

import pytest

from spec_t5x import processes

TESTS = pathlib.Path(__file__).parent
CASES = ("mixed:4x2:replicated", "mixed:1:replicated")
SLOW_CASES = (
    *(
        f"{mode}:{mesh}:replicated"
        for mesh in ("8x1", "2x4", "1x8")
        for mode in ("mixed", "greedy")
    ),
    "mixed:2x4:sharded",
    "greedy:2x4:none",
    "mixed:1:replicated",
    "greedy:1:replicated",
    "greedy:1:none",
)


def free_port():
  with socket.socket() as listener:
    listener.bind(("127.0.0.1", 0))
    return listener.getsockname()[1]


def run_both(commands, **environment):
  """Runs two processes at once, to their ends; returns them finished."""
  flags = (
      "--xla_force_host_platform_device_count=4"
      " --xla_backend_optimization_level=0"
  )
  started = [
      subprocess.Popen(
          [sys.executable, *map(str, command)],
          env=os.environ
          | {
              "JAX_PLATFORMS": "cpu",
              "PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)]),
              "XLA_FLAGS": flags,
          }
          | environment,
          stdout=subprocess.PIPE,
          stderr=subprocess.PIPE,
          text=True,
      )
      for command in commands
  ]
  try:
    return [(p.communicate(), p.returncode) for p in started]
  finally:
    for process in started:
      process.kill()


def run_workers(directory, cases):
  port = free_port()
  worker = TESTS / "processes_worker.py"
  ends = run_both([[worker, directory, port, i, *cases] for i in range(2)])
  errors = "\n".join(errors for (_, errors), _ in ends)
  assert [code for _, code in ends] == [0, 0], errors
  return [json.loads((directory / f"{i}.json").read_text()) for i in range(2)]


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
  """What each of the two processes saw."""
  return run_workers(tmp_path_factory.mktemp("processes"), CASES)


def assert_as_one_device(seen):
  first, second = (process["decoded"] for process in seen)
  for case, found in second.items():
    mode, _, draft = case.split(":")
    one = "none" if draft == "none" else "replicated"
    assert first[case] == found == first[f"{mode}:1:{one}"], case


def test_devices_are_those_of_both(seen):
  assert [process["devices"] for process in seen] == [[4, 8]] * 2


def test_decodes_as_one_device(seen):
  # Rows at temperature 0, 0.7 and 1 in one batch; both get all of them.
  assert_as_one_device(seen)


@pytest.mark.slow
def test_decodes_as_one_device_on_every_mesh(tmp_path):
  assert_as_one_device(run_workers(tmp_path, SLOW_CASES))


def test_the_first_process_decides(seen):
  messages = [process["messages"] for process in seen]
  assert messages[0]["first"] == messages[1]["first"]
  for told in messages:
    pid = told["first"]
    assert (
        told["error"]
        == f"FileNotFoundError: There is nothing for process {pid}."
    )
    assert told["same"] is None
    assert told["other"] == (
        "ValueError: `settings` must be the same in all processes. Got others"
        " than the first one's in processes [1]."
    )
    assert told["no mesh"] == (
        "ValueError: `mesh` must be given in a job of several processes:"
        " (data, model), over all 8 devices. Got None."
    )


def test_weights_are_read_in_parts_and_written_whole(seen):
  for process in seen:
    assert process["weights"] == {"part": [12, 32], "here": 4, "same": True}


def test_a_stopped_job_goes_on_in_all_processes(seen):
  for process in seen:
    job = process["job"]
    # The third batch is begun twice: it was stopped in its midst.
    assert job["decoded"] == [0, 1, 2, 2, 3]
    assert job["inputs"] == 11
    assert job["again"]
    assert "is of another run: `seed` was 0 and is 1" in job["other"]


def test_only_the_first_process_writes(seen):
  assert seen[0]["files"] == ["copy", "out.jsonl", "out.jsonl.summary.json"]
  assert seen[1]["files"] == []


def test_a_lone_process_is_the_first():
  assert processes.is_lone()
  assert processes.is_first()
  assert processes.on_first(lambda: "result") == "result"
  with pytest.raises(ValueError, match="reason"):
    processes.on_first(lambda: int("reason"))
  processes.check_same("anything", object())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("host:1", 2, 2), r"`process_index` must be in \[0, 2\).* Got 2"),
        (("host:1", 2, -1), "`process_index` must be in .* Got -1"),
        (("host", 2, 0), "`coordinator_address` must be HOST:PORT. Got 'host'"),
        ((":80", 2, 0), "`coordinator_address` must be HOST:PORT. Got ':80'"),
        (("host:http", 2, 0), "must be HOST:PORT. Got 'host:http'"),
    ],
)
def test_bad_places_in_a_job(arguments, message):
  with pytest.raises(ValueError, match=message):
    processes.join(*arguments)

"""Tests of jobs in several processes: the tokens of one device, one writer."""

import json
import pathlib

import pytest
import two_processes

from spec_t5x import processes

WORKER = pathlib.Path(__file__).parent / "processes_worker.py"
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


def run_workers(directory, cases):
  port = str(two_processes.free_port())
  command = [WORKER, directory, port]
  two_processes.run(*([*command, str(i), *cases] for i in range(2)))
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

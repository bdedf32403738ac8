"""Tests of the flags of jobs in several processes."""

import pytest
from absl import flags
from absl.testing import flagsaver

from spec_t5x import process_flags, processes

ALL = {
    "coordinator_address": "host:1",
    "process_count": 2,
    "process_index": 0,
}


@pytest.fixture
def joined(monkeypatch):
  """Collects what would be joined; no flag is set."""
  calls = []
  monkeypatch.setattr(processes, "join", lambda *args: calls.append(args))
  monkeypatch.setattr(
      processes, "join_cluster", lambda: calls.append("cluster")
  )
  flags.FLAGS.mark_as_parsed()
  with flagsaver.flagsaver(**dict.fromkeys(ALL)):
    yield calls


def test_without_flags_a_program_is_alone(joined):
  process_flags.join()
  assert joined == []


@pytest.mark.parametrize("multiprocess", [False, True])
def test_all_flags_name_the_job(joined, multiprocess):
  with flagsaver.flagsaver(multiprocess=multiprocess, **ALL):
    process_flags.join()
  assert joined == [("host:1", 2, 0)]


def test_a_cluster_is_asked_for(joined):
  with flagsaver.flagsaver(multiprocess=True):
    process_flags.join()
  assert joined == ["cluster"]


@pytest.mark.parametrize("multiprocess", [False, True])
@pytest.mark.parametrize("missing", ALL)
def test_half_of_the_flags_is_an_error(joined, missing, multiprocess):
  given = {name: value for name, value in ALL.items() if name != missing}
  names = " and ".join(f"`--{name}`" for name in given)
  message = (
      rf"`--{missing}` \(or \$JAX_{missing.upper()}\) must be given with"
      rf" {names}\. Got None\."
  )
  with flagsaver.flagsaver(multiprocess=multiprocess, **given):
    with pytest.raises(ValueError, match=message):
      process_flags.join()
  assert joined == []

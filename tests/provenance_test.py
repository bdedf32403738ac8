"""Tests of where results come from."""

import dataclasses
import json
import pathlib

import pytest

from spec_t5x import provenance
from spec_t5x.vocabulary import SHIPPED_PATH

FACTS = {
    "commit",
    "dirty",
    "command",
    "versions",
    "device",
    "xla_flags",
    "started",
}


@dataclasses.dataclass(frozen=True)
class Data:
  pairs: list
  vocabulary: pathlib.Path = SHIPPED_PATH


@dataclasses.dataclass(frozen=True)
class Settings:
  data: Data
  rates: tuple = (3, 0.5)
  name: str | None = None


def test_settings_are_told_by_their_fields():
  assert provenance.describe(Settings(Data([((2, 3), (4,))]))) == {
      "class": "Settings",
      "data": {
          "class": "Data",
          "pairs": [[[2, 3], [4]]],
          # Where the package lies is left out.
          "vocabulary": (
              SHIPPED_PATH.relative_to(
                  pathlib.Path(provenance.__file__).parents[1]
              ).as_posix()
          ),
      },
      "rates": [3, 0.5],
      "name": None,
  }


def test_data_are_told_by_length_and_content():
  pairs = [((i,), (i + 1,)) for i in range(1000)]
  told = provenance.describe(pairs)
  assert told["length"] == 1000
  assert told == provenance.describe(list(pairs))
  pairs[700] = ((700,), (702,))
  changed = provenance.describe(pairs)
  assert changed["length"] == 1000
  assert changed["sha256"] != told["sha256"]


def test_a_start_is_noted_with_its_first_step_alone(tmp_path):
  path = tmp_path / provenance.STARTS_NAME
  first = provenance.Starts(tmp_path, {"settings": {"seed": 0}})
  assert not path.exists()
  first.note(1)
  first.note(2)
  provenance.Starts(tmp_path, {"settings": {"seed": 1}}).note(8)
  records = list(map(json.loads, path.read_text().splitlines()))
  assert [r["start_step"] for r in records] == [0, 7]
  assert [r["settings"]["seed"] for r in records] == [0, 1]
  assert all(record.keys() >= FACTS for record in records)


def test_weights_are_told_by_names_and_content(tmp_path):
  (tmp_path / "a").write_bytes(b"1")
  before = provenance.weights_hash(tmp_path)
  assert provenance.weights_hash(tmp_path) == before
  (tmp_path / "a").rename(tmp_path / "b")
  renamed = provenance.weights_hash(tmp_path)
  (tmp_path / "b").write_bytes(b"2")
  assert len({before, renamed, provenance.weights_hash(tmp_path)}) == 3
  with pytest.raises(FileNotFoundError, match="There are no weights"):
    provenance.weights_hash(tmp_path / "c")


def test_cells_of_other_settings_are_refused(tmp_path):
  record = {"settings": {"passes": (1, 2)}, "weights_sha256": {"target": "0"}}
  provenance.note(tmp_path, record)
  changed = record | {"weights_sha256": {"target": "1"}}
  with pytest.raises(ValueError, match=r"weights \(\['target'\]\)"):
    provenance.note(tmp_path, changed)


def test_a_run_that_goes_on_with_other_code_says_so(tmp_path):
  record = {"settings": {}, "weights_sha256": {}, "commit": "a", "started": "1"}
  read = lambda: json.loads((tmp_path / "provenance.json").read_text())
  provenance.note(tmp_path, record)
  provenance.note(tmp_path, record | {"started": "2"})
  assert read() == record
  (tmp_path / "cells").mkdir()
  (tmp_path / "cells" / "one.jsonl").touch()
  provenance.note(tmp_path, record | {"commit": "b", "started": "3"})
  provenance.note(tmp_path, record | {"commit": "b", "started": "4"})
  [resumed] = read()["resumed"]
  assert resumed["commit"] == "b"
  assert resumed["started"] == "3"
  assert resumed["cells"] == 1
  assert read()["commit"] == "a"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("model name\t: A\nflags\t\t: sse avx2 avx512f\n", "A, AVX-512"),
        ("model name\t: A\nflags\t\t: sse avx2\nbugs\t: x\n", "A, AVX2"),
        ("model name\t: A: B\nflags\t\t: avx512\n", "A: B"),
    ],
)
def test_processors_of_one_name_are_told_apart(tmp_path, lines, expected):
  info = tmp_path / "cpuinfo"
  info.write_text(lines)
  assert provenance._processor(info) == expected
  assert provenance._processor(tmp_path / "none")

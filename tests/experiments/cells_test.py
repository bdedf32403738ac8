import pytest

from spec_t5x.experiments.cells import CellStore


def test_a_cell_comes_back_as_written(tmp_path):
  store = CellStore(tmp_path / "new" / "cells")
  assert "a" not in store
  store.write("a", {"temperature": 1.0}, [{"tokens": 3}, {"tokens": 4}])
  assert "a" in store
  about, rows = CellStore(store.directory).read("a")
  assert about == {"temperature": 1.0}
  assert rows == [{"tokens": 3}, {"tokens": 4}]


def test_names_are_sorted_and_filtered(tmp_path):
  store = CellStore(tmp_path)
  for name in ("walltime-b", "alpha-a", "walltime-a"):
    store.write(name, {})
  assert store.names("walltime-") == ["walltime-a", "walltime-b"]


def test_a_failure_while_writing_leaves_no_cell(tmp_path):
  store = CellStore(tmp_path)
  with pytest.raises(TypeError):
    store.write("a", {"not json": object()})
  assert "a" not in store
  assert list(tmp_path.iterdir()) == []


def test_a_missing_cell_is_named(tmp_path):
  with pytest.raises(FileNotFoundError, match=r"a\.jsonl is not finished"):
    CellStore(tmp_path).read("a")

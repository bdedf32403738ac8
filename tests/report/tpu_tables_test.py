"""Tests of what is predicted for TPUs, and of the committed tables."""

import pathlib
import shutil

import pytest

from spec_t5x.experiments.cells import CellStore
from spec_t5x.report import tpu_rows, tpu_tables
from spec_t5x.tpu import chips
from spec_t5x.tpu.counting import Work

RESULTS = pathlib.Path(__file__).parents[2] / "results" / "tpu_compile"
# One second of a v4 chip.
SECOND = int(chips.CHIPS["v4"].bandwidth)


@pytest.fixture(name="store")
def _store(tmp_path):
  """Calls of round seconds: target 1, verification 1.5, draft 0.25."""
  seconds = {
      ("target", 0): 2.0,
      ("target", 1): 1.0,
      ("target", 8): 1.5,
      ("T5-small", 0): 0.5,
      ("T5-small", 1): 0.25,
      ("T5-small", 2): 0.25,
  }
  rows = [
      {
          "model": model,
          "block": block,
          **Work(0, int(value * SECOND), 0, 0)._asdict(),
      }
      for (model, block), value in seconds.items()
  ]
  store = CellStore(tmp_path / "cells")
  about = {"slice": "v4-1", "task": "EnDe", "targets": 10}
  store.write("counts-v4-1-EnDe", about, rows)
  return store


def test_rows_of_table_2_by_hand(store):
  """Only where the draft, and a block of gamma + 1, were counted."""
  rows = tpu_rows.walltime_rows(store)
  assert [(row["draft"], row["temperature"]) for row in rows] == [
      ("T5-small", 0.0),
      ("T5-small", 1.0),
  ]
  row = rows[0]
  assert row["cost_coefficient"] == 0.25
  assert row["verify_ratio"] == 1.5
  assert (row["alpha"], row["gamma"]) == (0.75, 7)
  assert (row["paper_speed"], row["paper_expected_speed"]) == (3.4, 3.2)
  assert row["paper_cost_coefficient"] == 0.02
  tokens = (1 - 0.75**8) / (1 - 0.75)
  assert row["predicted_speed"] == pytest.approx(tokens / 2.75)
  assert row["predicted_speed_v"] == pytest.approx(tokens / 3.25)
  # Ten tokens behind an encoder of 2 s, or of 2.5 s with the draft's.
  whole = (2 + 10) / (2.5 + 10 * 3.25 / tokens)
  assert row["predicted_speed_encoders"] == pytest.approx(whole)


def test_every_figure_says_what_it_is(store):
  for table in (
      tpu_tables.walltime_table(tpu_rows.walltime_rows(store)),
      tpu_tables.cost_table(tpu_rows.cost_rows(store)),
      tpu_tables.compiled_table([]),
      tpu_tables.chip_table(),
  ):
    unmarked = {column.name for column in table.columns if not column.kind}
    assert unmarked <= set(
        "slice,task,draft,model,call,T,gamma,chip,source".split(",")
    )


def test_committed_tables_are_made_from_committed_cells(tmp_path):
  shutil.copytree(RESULTS / "cells", tmp_path / "cells")
  for path in tpu_tables.build(tmp_path):
    assert path.read_bytes() == (RESULTS / path.name).read_bytes(), path.name

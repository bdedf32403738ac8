"""Tables say of every column what its numbers are."""

import pytest

from spec_t5x.report import table
from spec_t5x.report.table import Table


def test_heads_name_the_kind():
  made = Table.of("gamma,alpha|measured,alpha|printed", [["7", "0.70", ""]])
  assert made.markdown() == (
      "| gamma | alpha (measured) | alpha (printed) |\n"
      "| --- | --- | --- |\n"
      "| 7 | 0.70 |  |\n"
  )


def test_unknown_kinds_are_refused():
  with pytest.raises(ValueError, match=r"`kind` must be one of .*'guessed'"):
    Table.of("alpha|guessed", [])


def test_ragged_bodies_are_refused():
  with pytest.raises(ValueError, match="must have 2 cells in a line"):
    Table.of("gamma,alpha", [["7"]])


def test_rows_of_figures_become_lines():
  made = Table.of_rows(
      (
          ("gamma", "{gamma}"),
          ("alpha|measured", "{alpha:.2f} [{low:.1f}]"),
          ("weights GB|computed", table.scaled("bytes", 1e9, ".1f")),
          ("kind", lambda row: row["kind"].upper()),
          ("printed", ""),
      ),
      [
          {"gamma": 7, "alpha": 0.7, "low": 0.6, "bytes": 2e9, "kind": "a"},
          {"gamma": 7, "alpha": 0.7, "low": None, "bytes": 1, "kind": "b"},
      ],
  )
  assert made.body == [
      ["7", "0.70 [0.6]", "2.0", "A", ""],
      ["7", "", "0.0", "B", ""],
  ]
  with pytest.raises(KeyError, match="alpha"):
    Table.of_rows((("alpha", "{alpha}"),), [{"gamma": 7}])


def test_cells():
  assert table.number(None) == ""
  assert table.number(1.234, ".1f", "x") == "1.2x"
  assert table.interval(1, 0.9, 1.1, "x") == "1.00x [0.90, 1.10]"

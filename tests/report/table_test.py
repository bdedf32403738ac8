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


def test_cells():
  assert table.number(None) == ""
  assert table.number(1.234, ".1f", "x") == "1.2x"
  assert table.interval(1, 0.9, 1.1, "x") == "1.00x [0.90, 1.10]"

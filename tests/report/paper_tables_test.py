"""The papers' tables beside ours, and their notes."""

import toy_results

from spec_t5x.report import paper_notes, paper_tables


def test_papers_tables_hold_every_printed_row(tmp_path):
  runs = [toy_results.write(tmp_path, drafts={"small": "s", "trigram": "t"})]
  assert len(paper_tables.table2(runs).body) == 12
  assert len(paper_tables.table4(runs).body) == 12
  ours = [line for line in paper_tables.table2(runs).body if line[-1]]
  assert [line[:4] for line in ours] == [
      ["EnDe", "T5-small", temperature, "7"] for temperature in "01"
  ]
  lines = paper_tables.table3(runs).body
  assert len(lines) == 16 + 1
  assert lines[-1][:2] == ["ours, target, ende", "trigram"]
  assert len(paper_tables.table5(runs).body) == 5
  for table in (paper_tables.table2([]), paper_tables.table3([])):
    assert {column.kind for column in table.columns} >= {"printed", "measured"}


def test_notes_follow_the_numbers(tmp_path):
  notes = paper_notes.notes([])
  assert all("No run of ours" in notes[f"table{n}"] for n in (2, 3, 4, 5))
  run = toy_results.write(tmp_path, drafts={"small": "s"})
  notes = paper_notes.notes([run])
  assert "it costs 1.35 steps" in notes["table2"]
  assert not any("No run of ours" in note for note in notes.values())

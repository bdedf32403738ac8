"""Tests of the README's table."""

import pathlib

import toy_results

from spec_t5x.report import headline, measures, tables

ROOT = pathlib.Path(__file__).parents[2]
README = f"Before.\n{headline._BEGIN}old\n{headline._END}After.\n"


def test_fastest_of_each_draft_and_temperature(tmp_path):
  roles = {"small": "s", "base": "b", "small-distilled": "d"}
  run = toy_results.write(tmp_path, drafts=roles, gammas=(3, 7))
  found = headline.rows([run])
  which = [(row["draft"], row["temperature"]) for row in found]
  assert which == [(role, t) for role in roles for t in (0.0, 1.0)]
  for row in found:
    others = [
        other["measured_speed"]
        for other in tables.walltime_rows(run)
        if other["temperature"] == row["temperature"]
        and other["draft"] == row["draft"]
    ]
    assert len(others) == 2
    assert row["measured_speed"] == max(others)
  # Table 2: EnDe. The paper distils no draft.
  body = headline.table(found).body
  assert [line[-3:] for line in body] == [
      ["7", "0.75", "3.4x"],
      ["7", "0.62", "2.6x"],
      ["7", "0.80", "2.8x"],
      ["5", "0.68", "2.4x"],
      ["", "", ""],
      ["", "", ""],
  ]


def test_tables_of_ngrams_are_left_out(tmp_path):
  drafts = {"small": "s", "base": "ngram:b"}
  run = toy_results.write(tmp_path, drafts=drafts, gammas=(3,))
  assert {row["draft"] for row in headline.rows([run])} == {"small"}


def test_what_is_around_the_table_stays(tmp_path):
  run = toy_results.write(tmp_path, drafts={"small": "s"}, gammas=(3,))
  readme = tmp_path / "README.md"
  readme.write_text(README)
  assert headline.update(readme, [run]) == [readme]
  text = readme.read_text()
  assert text.startswith("Before.\n<!--")
  assert text.endswith("-->\nAfter.\n")
  assert "old" not in text
  assert "| ende/toy | small | 0 | 3 | 0." in text
  headline.update(readme, [run])
  assert readme.read_text() == text


def test_other_files_are_left_alone(tmp_path):
  assert headline.update(tmp_path / "README.md", []) == []
  (tmp_path / "README.md").write_text("No table.\n")
  assert headline.update(tmp_path / "README.md", []) == []
  assert (tmp_path / "README.md").read_text() == "No table.\n"


def test_committed_readme_has_the_committed_results(tmp_path):
  committed = (ROOT / "README.md").read_text("utf-8")
  copy = tmp_path / "README.md"
  copy.write_text(committed, "utf-8")
  assert headline.update(copy, measures.runs(ROOT / "results")) == [copy]
  assert copy.read_text("utf-8") == committed

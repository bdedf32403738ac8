"""Committed tables and figures are those that the committed cells make."""

import pathlib
import shutil

import pytest

from spec_t5x.report import build, reference, tables

RESULTS = pathlib.Path(__file__).parents[2] / "results"


def test_the_papers_rows_are_found_by_role():
  row = reference.paper_row("ende", "small", 0.0)
  assert (row.alpha, row.gamma, row.speed) == (0.75, 7, 3.4)
  assert reference.paper_row("summ", "large", 1.0).speed == 1.7
  assert reference.paper_row("ende", "small-distilled", 0.0) is None
  assert reference.paper_row("ende", "small", 0.5) is None


def test_the_papers_alphas_are_found_by_role():
  assert reference.paper_alpha("ende", "bigram", 0.0) == 0.20
  assert reference.paper_alpha("summ", "small", 1.0) == 0.53
  assert reference.paper_alpha("ende", "bigram", 1.0, 0.3) == 0.25
  assert reference.paper_alpha("ende", "small", 0.0, 0.5) == 0.75
  # Not printed: another role, task, temperature, lenience.
  assert reference.paper_alpha("ende", "trigram", 0.0) is None
  assert reference.paper_alpha("summ", "small", 1.0, 0.3) is None
  assert reference.paper_alpha("ende", "small", 0.5) is None
  assert reference.paper_alpha("ende", "small", 1.0, 0.7) is None
  assert reference.paper_alpha("ende", "bigram", 0.0, 0.3) is None


def test_csv_has_four_digits_and_empty_cells():
  rows = [{"a": 0.123456, "b": None, "c": "x,y"}]
  assert tables.to_csv(rows, ["a", "b", "c"]) == 'a,b,c\n0.1235,,"x,y"\n'


def test_columns_are_the_documented_ones():
  assert ",".join(tables.ALPHA_COLUMNS) == (
      "task,target,draft,alpha_t0,alpha_t1,tokens,paper_alpha_t0,"
      "paper_alpha_t1,run"
  )
  assert ",".join(tables.WALLTIME_COLUMNS) == (
      "task,target,draft,temperature,gamma,alpha,alpha_low,alpha_high,"
      "cost_coefficient,verify_ratio,block_efficiency,predicted_speed,"
      "predicted_speed_measured_v,measured_speed,measured_low,measured_high,"
      "target_quality,speculative_quality,paper_alpha,paper_speed,device,run"
  )


@pytest.mark.parametrize(
    ("weights", "name"),
    [
        ("shipped:mine", "mine"),
        ("weights/mine", "mine"),
        ("runs/mine/model", "mine"),
        ("model", "model"),
    ],
)
def test_weights_are_called_by_the_name_that_tells_them_apart(weights, name):
  assert tables._weights_name(weights) == name


def test_a_missing_directory_is_refused(tmp_path):
  with pytest.raises(FileNotFoundError, match="no directory of results"):
    build.build(tmp_path / "none")


def assert_committed(path, committed):
  """The same bytes; but for pictures, which a renderer's version shows in."""
  assert committed.is_file(), committed
  if path.suffix != ".png":
    assert path.read_bytes() == committed.read_bytes(), committed


def test_committed_theory_is_what_the_formulas_give(tmp_path):
  """Made from nothing, it is all that is there, byte for byte."""
  written = build.build_theory(tmp_path / "theory")
  names = [path.name for path in written]
  assert len(names) == len(set(names))
  committed = RESULTS / "theory"
  assert set(names) == {path.name for path in committed.iterdir()}
  for path in written:
    assert_committed(path, committed / path.name)


def test_committed_results_are_remade_byte_for_byte(tmp_path, monkeypatch):
  # Theory is compared by the test above.
  monkeypatch.setattr(build, "build_theory", lambda directory: [])
  copy = tmp_path / "results"
  shutil.copytree(RESULTS, copy)
  written = build.build(copy)
  assert {path.name for path in written} >= {"index.html", "FINDINGS.md"}
  for path in written:
    assert_committed(path, RESULTS / path.relative_to(copy))

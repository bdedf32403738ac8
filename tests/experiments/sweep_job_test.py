"""Tests of what a sweep shows on the terminal."""

import io

import toy_results
from rich.console import Console

from spec_t5x.experiments import sweep_job
from spec_t5x.report import tables


def test_summary_fits_a_terminal(tmp_path):
  roles = {"small": "s", "small-distilled": "d"}
  run = toy_results.write(tmp_path, drafts=roles, gammas=(3, 10))
  rows = tables.walltime_rows(run)
  console = Console(file=io.StringIO(), width=80)
  console.print(sweep_job.summary(rows))
  lines = console.file.getvalue().splitlines()
  assert max(map(len, lines)) <= 80
  shown = [line.split() for line in lines if line.startswith("small")]
  assert len(shown) == len(rows) == 8
  for row, words in zip(rows, shown, strict=True):
    assert words[:3] == [
        row["draft"],
        f"{row['temperature']:g}",
        str(row["gamma"]),
    ]
    assert f"{row['measured_speed']:.2f}x" in words[5:]

"""Tests of figures of runs: what stands on their axes."""

import re

import pytest
import toy_results

from spec_t5x.report import figures, tables


@pytest.mark.parametrize("gammas", [(5,), (1, 2), (1, 3, 10)])
@pytest.mark.parametrize(
    "figure", [figures.speed_against_gamma, figures.tokens_against_gamma]
)
def test_gammas_stand_at_whole_numbers(tmp_path, figure, gammas):
  run = toy_results.write(tmp_path, drafts={"small": "s"}, gammas=gammas)
  _, svg = figure(tables.walltime_rows(run), tmp_path / "figure")
  axes = re.findall(
      r'<g id="matplotlib.axis_1">(.*?)<g id="matplotlib.axis_2">',
      svg.read_text("utf-8"),
      re.DOTALL,
  )
  assert axes
  for axis in axes:
    *ticks, label = re.findall(r">([^<>]+)</text>", axis)
    assert "gamma" in label
    assert all(tick.isdecimal() for tick in ticks)
    assert set(gammas) & set(map(int, ticks))


def test_each_prediction_of_a_single_gamma_is_marked(tmp_path):
  run = toy_results.write(tmp_path, drafts={"small": "s"}, gammas=(5,))
  _, svg = figures.speed_against_gamma(
      tables.walltime_rows(run), tmp_path / "figure"
  )
  text = svg.read_text("utf-8")
  panel = text.partition('<g id="axes_1">')[2].partition('<g id="axes_2">')[0]
  lines = re.findall(r'<g id="line2d_\d+">(.*?)</g>\n   ', panel, re.DOTALL)
  # One with c and v, one with c, and nothing of either is a line alone.
  dashed = [line for line in lines if "stroke-dasharray" in line]
  assert len(dashed) == 2
  assert all("<use " in line for line in dashed)

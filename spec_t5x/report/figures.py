"""Figures: alpha and speed against gamma, predicted and measured."""

import pathlib
from collections.abc import Callable, Sequence

import matplotlib
import numpy as np

matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402

from spec_t5x import theory  # noqa: E402
from spec_t5x.report.tables import Row  # noqa: E402

# Without these a figure holds the time it was made at, and random ids.
_METADATA = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}
STYLE = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 9,
    "grid.alpha": 0.3,
    "svg.fonttype": "none",
    "svg.hashsalt": "spec_t5x",
}
_MARKERS = "osD^v"


def save(figure: plt.Figure, path: pathlib.Path) -> list[pathlib.Path]:
  """Writes a figure as PNG and as SVG, always the same bytes; closes it."""
  for suffix, metadata in _METADATA.items():
    figure.savefig(path.with_suffix(f".{suffix}"), metadata=metadata, dpi=150)
  plt.close(figure)
  return [path.with_suffix(f".{suffix}") for suffix in _METADATA]


def _by_draft(rows: Sequence[Row], temperature: float):
  """Yields each draft with its rows and a marker."""
  drafts = list(dict.fromkeys(row["draft"] for row in rows))
  for number, draft in enumerate(drafts):
    chosen = [
        row
        for row in rows
        if row["draft"] == draft and row["temperature"] == temperature
    ]
    if chosen:
      yield draft, chosen, f"C{number}", _MARKERS[number % len(_MARKERS)]


def _panels(
    rows: Sequence[Row], path: pathlib.Path, label: str, draw: Callable
) -> list[pathlib.Path]:
  """One panel per temperature against gamma, all of one height.

  Args:
    rows: of the walltime table.
    path: where to, without suffix.
    label: of the vertical axis.
    draw: called with a panel, a draft's name, its rows, a colour, a marker.
  """
  temperatures = sorted({row["temperature"] for row in rows})
  with plt.rc_context(STYLE):
    figure, axes = plt.subplots(
        1,
        len(temperatures),
        figsize=(4.2 * len(temperatures), 3.4),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axis, temperature in zip(axes[0], temperatures, strict=True):
      for draft, *look in _by_draft(rows, temperature):
        draw(axis, draft, *look)
      axis.set_title(f"temperature {temperature:g}")
      axis.set_xlabel("gamma (tokens drafted in one iteration)")
      axis.xaxis.get_major_locator().set_params(integer=True)
    axes[0][0].set_ylabel(label)
    axes[0][-1].legend(fontsize=6, loc="best")
    return save(figure, path)


def speed_against_gamma(
    rows: Sequence[Row], path: pathlib.Path
) -> list[pathlib.Path]:
  """Measured speed with its range, and Thm 3.8; returns the files."""

  def draw(axis, draft, chosen, color, marker):
    gammas = [row["gamma"] for row in chosen]
    column = lambda name: np.array([row[name] for row in chosen])
    speed = column("measured_speed")
    axis.errorbar(
        gammas,
        speed,
        [speed - column("measured_low"), column("measured_high") - speed],
        color=color,
        marker=marker,
        capsize=2,
        label=f"{draft}, measured",
    )
    for name, style, what in (
        ("predicted_speed_measured_v", "--", "c and v"),
        ("predicted_speed", ":", "c"),
    ):
      axis.plot(
          gammas,
          column(name),
          style,
          color=color,
          label=f"{draft}, Thm 3.8 with {what}",
      )
    axis.axhline(1, color="black", linewidth=0.8)

  return _panels(rows, path, "speed, plain decoding = 1", draw)


def tokens_against_gamma(
    rows: Sequence[Row], path: pathlib.Path
) -> list[pathlib.Path]:
  """Tokens per target call, measured, and Equation 1; returns the files."""

  def draw(axis, draft, chosen, color, marker):
    gammas = [row["gamma"] for row in chosen]
    alpha = chosen[0]["alpha"]
    axis.plot(
        gammas,
        [row["block_efficiency"] for row in chosen],
        color=color,
        marker=marker,
        label=f"{draft}, measured",
    )
    axis.plot(
        gammas,
        theory.expected_tokens(alpha, np.array(gammas)),
        "--",
        color=color,
        label=f"{draft}, Eq 1 with alpha = {alpha:.2f}",
    )

  return _panels(rows, path, "tokens per target call", draw)

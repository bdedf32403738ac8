"""Figures of runs: what was measured against what was predicted."""

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
_GAMMA = "gamma (tokens drafted in one iteration)"
_PLACE = "place in the drafted block"
# Rates of fewer tests say nothing in a figure.
FEW_TESTS = 20
# Axes of whole numbers.
_WHOLE = (_GAMMA, _PLACE)


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
    rows: Sequence[Row],
    path: pathlib.Path,
    label: str,
    draw: Callable,
    finish: Callable,
    against: str = _GAMMA,
) -> list[pathlib.Path]:
  """One panel per temperature, all of one height.

  Args:
    rows: of a table, with draft and temperature.
    path: where to, without suffix.
    label: of the vertical axis.
    draw: called with a panel, a draft's name, its rows, a colour, a marker.
    finish: called with each panel at the end.
    against: label of the horizontal axis.
  """
  temperatures = sorted({row["temperature"] for row in rows})
  with plt.rc_context(STYLE):
    figure, axes = plt.subplots(
        1,
        len(temperatures),
        figsize=(3.6 * len(temperatures) + 1.8, 3.4),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axis, temperature in zip(axes[0], temperatures, strict=True):
      for draft, *look in _by_draft(rows, temperature):
        draw(axis, draft, *look)
      axis.set_title(f"temperature {temperature:g}")
      axis.set_xlabel(against)
      if against in _WHOLE:
        axis.xaxis.get_major_locator().set_params(integer=True)
        # One place alone would stand between fractions.
        left, right = axis.get_xlim()
        if right - left < 1:
          axis.set_xlim(left - 1, right + 1)
    # A limit that is set keeps the other, so all curves must be there.
    for axis in axes[0]:
      finish(axis)
    axes[0][0].set_ylabel(label)
    figure.legend(
        *axes[0][0].get_legend_handles_labels(),
        fontsize=7,
        handlelength=3,
        loc="outside right upper",
    )
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
        ("predicted_speed_measured_v", "--+", "c and v"),
        ("predicted_speed", ":x", "c"),
    ):
      axis.plot(
          gammas,
          column(name),
          style,
          color=color,
          markersize=4,
          label=f"{draft}, Thm 3.8 with {what}",
      )

  plain = lambda axis: axis.axhline(1, color="black", linewidth=0.8)
  return _panels(rows, path, "speed, plain decoding = 1", draw, plain)


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
        "--+",
        color=color,
        markersize=4,
        label=f"{draft}, Eq 1 with alpha",
    )

  one = lambda axis: axis.set_ylim(bottom=1)
  return _panels(rows, path, "tokens per target call", draw, one)


def acceptance_by_place(
    rows: Sequence[Row], path: pathlib.Path
) -> list[pathlib.Path]:
  """Acceptance by place with its interval, and one rate for all places.

  Args:
    rows: of `position_tables`, of one gamma.
    path: where to, without suffix.

  Returns:
    The files.
  """

  def draw(axis, draft, chosen, color, marker):
    tested = [row for row in chosen if row["tested"] >= FEW_TESTS]
    column = lambda name: np.array([row[name] for row in tested])
    rate = column("rate")
    axis.errorbar(
        column("place"),
        rate,
        [rate - column("rate_low"), column("rate_high") - rate],
        color=color,
        marker=marker,
        capsize=2,
        label=f"{draft}, measured",
    )
    axis.axhline(
        chosen[0]["alpha"],
        color=color,
        linestyle="--",
        linewidth=0.8,
        label=f"{draft}, alpha of all positions",
    )

  whole = lambda axis: axis.set_ylim(0, 1.02)
  label = "accepted, of those tested"
  return _panels(rows, path, label, draw, whole, _PLACE)


def predicted_against_measured(
    rows: Sequence[Row], path: pathlib.Path
) -> list[pathlib.Path]:
  """Theorem 3.8 with c alone and with all that was measured; the files.

  Args:
    rows: of `prediction_tables`.
    path: where to, without suffix.
  """

  def draw(axis, draft, chosen, color, marker):
    measured = [row["decode_speed"] for row in chosen]
    for key, face, what in (
        ("speed_c", "none", "c alone"),
        ("speed_all_steps", color, "all costs, by place"),
    ):
      axis.plot(
          measured,
          [row[key] for row in chosen],
          marker,
          color=color,
          markerfacecolor=face,
          label=f"{draft}, {what}",
      )

  def finish(axis):
    axis.axline((0, 0), slope=1, color="black", linewidth=0.8)
    axis.set_xlim(left=0)
    axis.set_ylim(bottom=0)

  label = "predicted speed, plain decoding = 1"
  against = "measured speed without encoders"
  return _panels(rows, path, label, draw, finish, against)


def distance_against_speed(
    rows: Sequence[Row], path: pathlib.Path
) -> list[pathlib.Path]:
  """What lenience gains against what it costs; returns the files.

  Args:
    rows: of `lenience_tables`, all with a speed.
    path: where to, without suffix.
  """

  def draw(axis, draft, chosen, color, marker):
    speeds = [row["measured_speed"] for row in chosen]
    distances = [row["distance"] for row in chosen]
    axis.plot(speeds, distances, color=color, marker=marker, label=draft)
    for row, *place in zip(chosen, speeds, distances, strict=True):
      axis.annotate(
          f"{row['lenience']:g}",
          place,
          xytext=(3, 3),
          textcoords="offset points",
          fontsize=6,
          color=color,
      )

  return _panels(
      rows,
      path,
      "distance from the target's law",
      draw,
      lambda axis: axis.set_ylim(bottom=0),
      "measured speed; lenience at each point",
  )

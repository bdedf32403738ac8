"""Figures: alpha and speed against gamma, predicted and measured."""

import pathlib
from collections.abc import Sequence

import matplotlib

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


def speed_against_gamma(rows: Sequence[Row], path: pathlib.Path) -> None:
  """Measured speed with its range, and Thm 3.8 with measured c and v."""
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
      for draft, chosen, color, marker in _by_draft(rows, temperature):
        gammas = [row["gamma"] for row in chosen]
        speed = [row["measured_speed"] for row in chosen]
        ranges = [
            [row["measured_speed"] - row["measured_low"] for row in chosen],
            [row["measured_high"] - row["measured_speed"] for row in chosen],
        ]
        axis.errorbar(
            gammas,
            speed,
            ranges,
            color=color,
            marker=marker,
            capsize=2,
            label=f"{draft}, measured",
        )
        for key, style, name in (
            ("predicted_speed_measured_v", "--", "c and v"),
            ("predicted_speed", ":", "c"),
        ):
          axis.plot(
              gammas,
              [row[key] for row in chosen],
              style,
              color=color,
              label=f"{draft}, Thm 3.8 with {name}",
          )
      axis.axhline(1, color="black", linewidth=0.8)
      axis.set_title(f"temperature {temperature:g}")
      axis.set_xlabel("gamma (tokens drafted in one iteration)")
    axes[0][0].set_ylabel("speed, plain decoding = 1")
    axes[0][-1].legend(fontsize=6, loc="best")
    save(figure, path)


def tokens_against_gamma(rows: Sequence[Row], path: pathlib.Path) -> None:
  """Tokens per target call, measured, and Equation 1 with measured alpha."""
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
      for draft, chosen, color, marker in _by_draft(rows, temperature):
        gammas = [row["gamma"] for row in chosen]
        measured = [row["block_efficiency"] for row in chosen]
        expected = [
            float(theory.expected_tokens(row["alpha"], row["gamma"]))
            for row in chosen
        ]
        alpha = chosen[0]["alpha"]
        axis.plot(
            gammas,
            measured,
            color=color,
            marker=marker,
            label=f"{draft}, measured",
        )
        axis.plot(
            gammas,
            expected,
            "--",
            color=color,
            label=f"{draft}, Eq 1 with alpha = {alpha:.2f}",
        )
      axis.set_title(f"temperature {temperature:g}")
      axis.set_xlabel("gamma (tokens drafted in one iteration)")
    axes[0][0].set_ylabel("tokens per target call")
    axes[0][-1].legend(fontsize=6, loc="best")
    save(figure, path)

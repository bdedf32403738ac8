"""Figures 2, 3 and 4 of Leviathan et al. 2023, and A.2 as a figure.

`chen_figures` draws Figure 1 of Chen et al. 2023. Axes are the papers'. Curves
are named where they end, and differ in their dashes too, so that they can be
told apart in print.
"""

import pathlib
from collections.abc import Callable, Sequence

from matplotlib import pyplot as plt

from spec_t5x.report import chen_figures, theory_tables
from spec_t5x.report.figures import STYLE, save
from spec_t5x.report.tables import Row

_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
_SIZE = (4.6, 3.4)


def _frame(axis, ylabel: str, top: float) -> None:
  """The paper's axes: alpha from 0.5 to 0.9."""
  axis.set_xlim(0.5, 0.9)
  axis.set_ylim(0, top)
  axis.set_xlabel("alpha (acceptance rate)")
  axis.set_ylabel(ylabel)


def _new(ylabel: str, top: float):
  """One figure over alpha."""
  figure, axis = plt.subplots(figsize=_SIZE, layout="constrained")
  _frame(axis, ylabel, top)
  return figure, axis


def _curve(axis, rows: Sequence[Row], key: str, name: str, **style):
  """Draws a quantity against alpha and names it on the right."""
  alphas = [row["alpha"] for row in rows]
  values = [row[key] for row in rows]
  axis.plot(alphas, values, **style)
  _name(axis, name, (alphas[-1], values[-1]), (4, 0), style["color"])


def _name(axis, name: str, place, offset, color: str):
  """Writes a curve's name beside one of its points, points away from it."""
  axis.annotate(
      name,
      place,
      xytext=offset,
      textcoords="offset points",
      va="center",
      color=color,
      annotation_clip=False,
  )


def _of(rows: Sequence[Row], key: str, value: float) -> list[Row]:
  return [row for row in rows if row[key] == value]


def figure2(path: pathlib.Path) -> list[pathlib.Path]:
  """Expected tokens per target call; 1 is plain decoding."""
  rows = theory_tables.figure2()
  figure, axis = _new("expected tokens per target call", 10.4)
  for number, gamma in enumerate(theory_tables.FIGURE2_GAMMAS):
    is_bound = gamma == float("inf")
    _curve(
        axis,
        _of(rows, "gamma", gamma),
        "tokens",
        "γ = ∞" if is_bound else f"γ = {gamma}",
        color=f"C{number}",
        linestyle=_DASHES[number],
    )
  axis.axhline(1, color="black", linewidth=0.8)
  axis.text(0.505, 0.9, "plain decoding", va="top")
  return save(figure, path)


def figure3(path: pathlib.Path) -> list[pathlib.Path]:
  """The gamma of the greatest speed."""
  rows = theory_tables.figure3()
  figure, axis = _new("γ of the greatest speed", 25)
  for number, cost in enumerate(theory_tables.FIGURE3_COSTS):
    _curve(
        axis,
        _of(rows, "cost_coefficient", cost),
        "gamma",
        f"c = {cost:g}",
        color=f"C{number}",
        linestyle=_DASHES[number],
        drawstyle="steps-mid",
    )
  return save(figure, path)


def figure4(path: pathlib.Path) -> list[pathlib.Path]:
  """Speed and operations side by side; the paper draws them as one."""
  rows = theory_tables.figure4()
  figure, axes = plt.subplots(
      1, 2, figsize=(2 * _SIZE[0], _SIZE[1]), layout="constrained"
  )
  for axis, key, top in zip(
      axes, ("speed", "operations"), (10, 6), strict=True
  ):
    _frame(axis, f"{key}, plain decoding = 1", top)
    axis.axhline(1, color="black", linewidth=0.8)
  for number, gamma in enumerate(theory_tables.FIGURE4_GAMMAS):
    of_gamma = _of(rows, "gamma", gamma)
    style = dict(color=f"C{number}", linestyle=_DASHES[number])
    _curve(axes[0], of_gamma, "speed", f"γ = {gamma}", **style)
    # These curves end close together; they are named where they begin.
    _curve(axes[1], of_gamma, "operations", "", **style)
    start = (0.51, of_gamma[1]["operations"])
    _name(axes[1], f"γ = {gamma}", start, (6, 6), f"C{number}")
  return save(figure, path)


def rejection(path: pathlib.Path) -> list[pathlib.Path]:
  """Acceptance of both rules against the exponent of the draft's law."""
  rows = theory_tables.rejection()
  exponents = [row["draft_exponent"] for row in rows]
  figure, axis = plt.subplots(figsize=_SIZE, layout="constrained")
  for key, label, style in (
      ("alpha", "speculative decoding", "o-"),
      ("rejection_acceptance", "rejection sampling", "s--"),
  ):
    axis.plot(exponents, [row[key] for row in rows], style, label=label)
  axis.set_ylim(0, 1.05)
  axis.set_xlabel(
      r"$s$ (draft: probability $1/\mathrm{rank}^s$, target: $1/\mathrm{rank}$)"
  )
  axis.set_ylabel("probability of acceptance")
  axis.legend()
  return save(figure, path)


FIGURES: dict[str, Callable[[pathlib.Path], list[pathlib.Path]]] = {
    "figure2": figure2,
    "figure3": figure3,
    "figure4": figure4,
    "rejection": rejection,
    "chen_figure1": chen_figures.printed,
}


def draw(directory: pathlib.Path) -> list[pathlib.Path]:
  """Writes all figures as PNG and SVG; returns the files."""
  written = []
  with plt.rc_context(STYLE):
    for name, figure in FIGURES.items():
      written += figure(directory / name)
  return written

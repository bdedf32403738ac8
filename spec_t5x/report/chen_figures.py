"""Figure 1 of Chen et al. 2023: their points with a model, and ours measured.

Three panels against K, the number of drafted tokens: the time of a text of 128
tokens, the acceptance rate, the time of a loop.
"""

import pathlib
from collections.abc import Sequence

from matplotlib import pyplot as plt

from spec_t5x.report import chen_tables, chen_theory
from spec_t5x.report.chen_theory import FIGURE_TOKENS
from spec_t5x.report.figures import STYLE, save
from spec_t5x.report.tables import Row

_LABELS = (
    f"ms of {FIGURE_TOKENS} tokens",
    "acceptance rate, tokens a loop / (K + 1)",
    "ms of a loop",
)
_DASHES = ("-", "--", "-.", ":")
_MARKERS = "osD^v"


def _new():
  """The three panels, without curves."""
  figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.4), layout="constrained")
  for axis, label in zip(axes, _LABELS, strict=True):
    axis.set_xlabel("K (tokens drafted in one loop)")
    axis.set_ylabel(label)
    axis.xaxis.get_major_locator().set_params(integer=True)
  return figure, axes


def _finish(figure, axes, path: pathlib.Path) -> list[pathlib.Path]:
  for axis in axes:
    axis.set_ylim(bottom=0)
  figure.legend(
      *axes[0].get_legend_handles_labels(),
      fontsize=7,
      loc="outside right upper",
  )
  return save(figure, path)


def printed(path: pathlib.Path) -> list[pathlib.Path]:
  """The paper's points, and the model with both loop times; the files."""
  rows = chen_theory.figure1()
  with plt.rc_context(STYLE):
    figure, axes = _new()
    names = dict.fromkeys(row["benchmark"] for row in rows)
    for number, name in enumerate(names):
      chosen = [row for row in rows if row["benchmark"] == name]
      look = {"color": f"C{number}"}
      for model, dash, words in (
          ("figure", "-", "model, loop of the figure"),
          ("latencies", ":", "model, latencies"),
      ):
        keys = (
            f"predicted_milliseconds_{model}",
            "predicted_acceptance",
            f"predicted_loop_{model}",
        )
        for axis, key in zip(axes, keys, strict=True):
          _curve(axis, chosen, key, dash, **look, label=f"{name}, {words}")
      keys = ("paper_milliseconds", "paper_acceptance", "paper_loop")
      for axis, key in zip(axes, keys, strict=True):
        known = [row for row in chosen if row[key] is not None]
        marker = _MARKERS[number]
        _curve(axis, known, key, marker, **look, label=f"{name}, printed")
    return _finish(figure, axes, path)


def measured(rows: Sequence[Row], path: pathlib.Path) -> list[pathlib.Path]:
  """Ours, with the range of the passes in the first panel; the files.

  Args:
    rows: of `chen_tables.rows`, of one run.
    path: where to, without suffix.
  """
  drafts = list(dict.fromkeys(row["draft"] for row in rows))
  samplings = list(dict.fromkeys(map(chen_tables.sampling, rows)))
  with plt.rc_context(STYLE):
    figure, axes = _new()
    for (draft, sampling), chosen in _grouped(rows).items():
      number = drafts.index(draft)
      look = {
          "color": f"C{number}",
          "linestyle": _DASHES[samplings.index(sampling) % len(_DASHES)],
          "marker": _MARKERS[number % len(_MARKERS)],
      }
      middle, low, high = (
          [FIGURE_TOKENS * row[f"token_{which}"] for row in chosen]
          for which in ("milliseconds", "low", "high")
      )
      gammas = [row["gamma"] for row in chosen]
      ends = [
          [m - l for m, l in zip(middle, low, strict=True)],
          [h - m for h, m in zip(high, middle, strict=True)],
      ]
      label = f"{draft}, {sampling}"
      axes[0].errorbar(gammas, middle, ends, capsize=2, label=label, **look)
      for axis, key in zip(
          axes[1:], ("acceptance", "loop_milliseconds"), strict=True
      ):
        _curve(axis, chosen, key, **look)
    return _finish(figure, axes, path)


def _curve(axis, rows: Sequence[Row], key: str, *style, **look) -> None:
  values = [row[key] for row in rows]
  axis.plot([row["gamma"] for row in rows], values, *style, **look)


def _grouped(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
  groups = {}
  for row in rows:
    key = row["draft"], chen_tables.sampling(row)
    groups.setdefault(key, []).append(row)
  return groups

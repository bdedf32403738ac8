"""Alpha against lenience (Leviathan et al. 2023, A.5 and Table 5), measured."""

import itertools
import pathlib
from collections.abc import Sequence

from spec_t5x.experiments.alpha import cell_name
from spec_t5x.experiments.cells import CellStore
from spec_t5x.report import measures, reference
from spec_t5x.report.tables import Row, markdown, run_name, run_settings

COLUMNS = (
    "task,draft,temperature,lenience,alpha,alpha_low,alpha_high,tokens,"
    "paper_alpha,run"
).split(",")


def rows(run: pathlib.Path) -> list[Row]:
  """All alphas of a run that has leniences below 1, else none."""
  settings, store = run_settings(run), CellStore(run / "cells")
  leniences = settings.get("leniences")
  if not leniences:
    return []
  found = []
  for about in itertools.product(
      settings["drafts"], settings["temperatures"], (1.0, *leniences)
  ):
    if cell_name(*about) not in store:
      continue
    alpha = measures.alpha(store, *about)
    draft, temperature, lenience = about
    found.append(
        {
            "task": settings["task"],
            "draft": draft,
            "temperature": temperature,
            "lenience": lenience,
            "alpha": alpha.estimate.value,
            "alpha_low": alpha.estimate.low,
            "alpha_high": alpha.estimate.high,
            "tokens": alpha.tokens,
            "paper_alpha": reference.paper_alpha(settings["task"], *about),
            "run": run_name(run),
        }
    )
  return found


def to_markdown(rows: Sequence[Row]) -> str:
  """A line per draft and temperature, a column per lenience; paper's behind."""
  leniences = list(dict.fromkeys(row["lenience"] for row in rows))
  lines = {}
  for row in rows:
    paper = row["paper_alpha"]
    text = f"{row['alpha']:.2f}" + ("" if paper is None else f" ({paper:g})")
    key = row["draft"], row["temperature"]
    lines.setdefault(key, {})[row["lenience"]] = text
  return markdown(
      ["draft", "T", *(f"l = {lenience:g} (paper)" for lenience in leniences)],
      [
          [draft, f"{temperature:g}", *(cells.get(l, "") for l in leniences)]
          for (draft, temperature), cells in lines.items()
      ],
  )

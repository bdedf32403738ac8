"""Chen et al. 2023, Table 1 and Figure 1, from the walltime cells of a sweep.

Their K is gamma, their loop an iteration: K draft steps and one verification.
Times are of the loop alone, without encoders, which their models have not;
what a prompt costs is in it. Their acceptance rate is the number of tokens that
a loop yields, the target's own included, over K + 1.
"""

import pathlib
import statistics
from collections.abc import Sequence

import numpy as np

from spec_t5x.experiments.cells import CellStore
from spec_t5x.report import measures, reference
from spec_t5x.report.table import Table
from spec_t5x.report.tables import (
    DIFFERENCE,
    QUALITIES,
    Row,
    run_name,
    run_settings,
)

COLUMNS = (
    "task,draft,temperature,top_p,gamma,acceptance,tokens_per_loop,"
    "loop_milliseconds,token_milliseconds,token_low,token_high,speed,speed_low,"
    "speed_high,metric,target_quality,speculative_quality,run"
).split(",")

# The K of the paper's Table 1; of the gammas at hand the closest is shown.
_PAPER_GAMMA = 4


def rows(run: pathlib.Path) -> list[Row]:
  """Figure 1: all gammas of each draft and temperature; 0 is plain decoding."""
  settings, store = run_settings(run), CellStore(run / "cells")
  found = {}
  for name in store.names("walltime-"):
    row = _row(settings, store, name) | {"run": run_name(run)}
    found.setdefault((row["draft"], row["temperature"]), []).append(row)
  order = list(settings.get("drafts", ()))
  keys = sorted(found, key=lambda key: (order.index(key[0]), key[1]))
  return [
      row
      for key in keys
      for row in (
          _plain_row(found[key]),
          *sorted(found[key], key=lambda row: row["gamma"]),
      )
  ]


def table1_rows(run: pathlib.Path) -> list[Row]:
  """Table 1: the gamma closest to the paper's K."""
  drafted = [row for row in rows(run) if row["gamma"]]
  if not drafted:
    return []
  gammas = {row["gamma"] for row in drafted}
  chosen = min(gammas, key=lambda gamma: (abs(gamma - _PAPER_GAMMA), gamma))
  return [row for row in drafted if row["gamma"] == chosen]


def _row(settings: Row, store: CellStore, name: str) -> Row:
  about, texts = store.read(name)
  cell = measures.walltime(store, name)
  milliseconds = {
      which: 1e3 * np.sum([text[which]["decode_seconds"] for text in texts], 0)
      for which in ("plain", "speculative")
  }
  loops = sum(text["speculative"]["timed_iterations"] for text in texts)
  drafted = milliseconds["speculative"]
  tokens = cell.counts.block_efficiency
  return {
      "task": settings["task"],
      "draft": about["draft"],
      "temperature": about["temperature"],
      "top_p": settings.get("top_p", 0.0),
      "gamma": about["gamma"],
      "acceptance": tokens / (about["gamma"] + 1),
      "tokens_per_loop": tokens,
      "loop_milliseconds": statistics.median(drafted) / loops,
      "token_milliseconds": statistics.median(drafted) / cell.tokens,
      "token_low": min(drafted) / cell.tokens,
      "token_high": max(drafted) / cell.tokens,
      "speed": cell.decode_speed.value,
      "speed_low": cell.decode_speed.low,
      "speed_high": cell.decode_speed.high,
      **measures.quality(store, about["draft"], about["temperature"])._asdict(),
      "plain_milliseconds": (
          statistics.median(milliseconds["plain"]) / cell.tokens
      ),
  }


def _plain_row(drafted: Sequence[Row]) -> Row:
  """Plain decoding, which every cell timed on the same texts."""
  times = [row["plain_milliseconds"] for row in drafted]
  median = statistics.median(times)
  return {
      **drafted[0],
      "gamma": 0,
      "acceptance": 1.0,
      "tokens_per_loop": 1.0,
      "loop_milliseconds": median,
      "token_milliseconds": median,
      "token_low": min(times),
      "token_high": max(times),
      "speed": 1.0,
      "speed_low": 1.0,
      "speed_high": 1.0,
      "speculative_quality": drafted[0]["target_quality"],
  }


def sampling(row: Row) -> str:
  """How tokens are drawn, in the paper's words."""
  if row["temperature"] == 0:
    return "greedy"
  law = f"nucleus {row['top_p']:g}" if row["top_p"] else "all tokens"
  return f"{law}, T = {row['temperature']:g}"


def figure1_table(rows: Sequence[Row]) -> Table:
  """A line per K."""
  return Table.of_rows(
      (
          ("draft", "{draft}"),
          ("sampling", sampling),
          ("K", "{gamma}"),
          (
              "ms a token|measured",
              "{token_milliseconds:.2f} [{token_low:.2f}, {token_high:.2f}]",
          ),
          ("acceptance|measured", "{acceptance:.2f}"),
          ("tokens a loop|measured", "{tokens_per_loop:.2f}"),
          ("ms a loop|measured", "{loop_milliseconds:.2f}"),
      ),
      rows,
  )


def table1_table(rows: Sequence[Row]) -> Table:
  """A line per draft and sampling, then the paper's lines."""
  measured = Table.of_rows(
      (
          ("task", "{task}"),
          ("draft", "{draft}"),
          ("sampling", sampling),
          ("K", "{gamma}"),
          ("quality is", "{metric}"),
          ("quality plain / drafted|measured", QUALITIES),
          ("drafted less plain|measured", DIFFERENCE),
          ("ms a token plain|measured", "{plain_milliseconds:.2f}"),
          ("ms a token drafted|measured", "{token_milliseconds:.2f}"),
          (
              "speed|measured",
              "{speed:.2f}x [{speed_low:.2f}, {speed_high:.2f}]",
          ),
          # Of the paper's lines alone.
          ("quality plain / drafted|printed", ""),
          ("ms a token plain / drafted|printed", ""),
          ("speed|printed", ""),
      ),
      rows,
  )
  printed = map(_printed, reference.table("chen_table1"))
  return measured._replace(body=[*measured.body, *printed])


def _printed(row: dict[str, str]) -> list[str]:
  """A line of the paper; nothing is measured in it."""
  law = {
      "temperature": float(row["temperature"]),
      "top_p": float(row["top_p"] or 0),
  }
  ways = ("autoregressive", "speculative")
  return [
      row["benchmark"],
      "4B for 70B",
      sampling(law),
      row["K"],
      row["metric"],
      *[""] * 5,
      " / ".join(row[f"{way}_quality"] for way in ways),
      " / ".join(row[f"{way}_ms_per_token"] for way in ways),
      f"{row['printed_speedup']}x",
  ]

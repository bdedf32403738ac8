"""Figure 1 of Leviathan et al. 2023: which tokens of a text came from whom."""

import pathlib
from typing import NamedTuple

from rich.console import RenderableType

from spec_t5x import trace
from spec_t5x.experiments.cells import CellStore
from spec_t5x.report.tables import Row
from spec_t5x.trace import Segment


class Pieces(dict[int, str]):
  """The spelling of the tokens of one trace."""

  def piece(self, token: int) -> str:
    """See `trace.Spelling`."""
    return self[token]


class Traced(NamedTuple):
  """One traced text.

  Attributes:
    name: of its cell.
    about: draft, temperature, gamma, example and source.
    iterations: segments of each round.
    pieces: how their tokens are spelt.
  """

  name: str
  about: Row
  iterations: list[list[Segment]]
  pieces: Pieces

  def count(self, kind: str) -> int:
    """Number of tokens of one fate."""
    return sum(
        len(segment.tokens)
        for segments in self.iterations
        for segment in segments
        if segment.kind == kind
    )

  @property
  def title(self) -> str:
    """What was decoded, and how."""
    return (
        f"Draft {self.about['draft']}, gamma {self.about['gamma']},"
        f" temperature {self.about['temperature']:g}:"
        f" {self.about['source']}"
    )

  def render(self) -> RenderableType:
    """The trace for a terminal."""
    return trace.render(self.iterations, self.pieces, self.title)


def read(run: pathlib.Path) -> list[Traced]:
  """All traces of a run, sorted by name."""
  store = CellStore(run / "cells")
  found = []
  for name in store.names("trace-"):
    about, rows = store.read(name)
    pieces = Pieces()
    iterations = []
    for row in rows:
      for segment in row["segments"]:
        pieces |= zip(segment["tokens"], segment.pop("pieces"), strict=True)
      iterations.append(
          [Segment(s["kind"], tuple(s["tokens"])) for s in row["segments"]]
      )
    found.append(Traced(name, about, iterations, pieces))
  return found


def draw(traced: Traced, folder: pathlib.Path) -> list[pathlib.Path]:
  """Writes a trace as SVG and HTML; returns the files."""
  paths = [folder / f"{traced.name}{suffix}" for suffix in (".svg", ".html")]
  for path in paths:
    trace.export([traced.render()], path)
  return paths

"""One table for readers, as Markdown or HTML; every figure says what it is."""

from collections.abc import Sequence
from typing import NamedTuple

# What a column of numbers can be. Nothing else may be said of one.
KINDS = (
    "measured",
    "compiled",
    "predicted",
    "computed",
    "printed",
    "simulated",
)


class Column(NamedTuple):
  """Head of a column.

  Attributes:
    name: what it holds.
    kind: one of `KINDS`; empty for what is set and not found, such as gamma.
  """

  name: str
  kind: str = ""

  def __str__(self) -> str:
    """The head in plain text."""
    return f"{self.name} ({self.kind})" if self.kind else self.name


class Table(NamedTuple):
  """A table as readers see it.

  Attributes:
    columns: the head.
    body: lines of cells, as many as there are columns; empty if unknown.
  """

  columns: tuple[Column, ...]
  body: Sequence[Sequence[str]]

  @classmethod
  def of(cls, head: str, body: Sequence[Sequence[str]]) -> "Table":
    """Makes a table from a short form of its head.

    Args:
      head: names separated by commas, the kind behind a bar:
        'gamma,alpha|measured'.
      body: lines of cells.

    Raises:
      ValueError: a kind is unknown, or a line has not one cell per column.
    """
    columns = tuple(Column(*name.split("|")) for name in head.split(","))
    for column in columns:
      if column.kind and column.kind not in KINDS:
        raise ValueError(f"`kind` must be one of {KINDS}. Got {column.kind!r}.")
    for line in body:
      if len(line) != len(columns):
        raise ValueError(
            f"`body` must have {len(columns)} cells in a line. Got {line}."
        )
    return cls(columns, body)

  def markdown(self) -> str:
    """The table in Markdown."""
    lines = [map(str, self.columns), ["---"] * len(self.columns), *self.body]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def number(value: float | None, form: str = ".2f", unit: str = "") -> str:
  """A number in a cell; nothing for None."""
  return "" if value is None else f"{value:{form}}{unit}"


def interval(value: float, low: float, high: float, unit: str = "") -> str:
  """An estimate with its range in brackets."""
  return f"{value:.2f}{unit} [{low:.2f}, {high:.2f}]"


def qualities(plain: float | None, other: float | None) -> str:
  """Scores of two ways to decode the same texts; nothing without a score."""
  return "" if plain is None else f"{plain:.1f} / {other:.1f}"

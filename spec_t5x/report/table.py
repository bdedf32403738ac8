"""One table for readers, as Markdown or HTML; every figure says what it is."""

import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

# What a column of numbers can be. Nothing else may be said of one.
KINDS = (
    "measured",
    "compiled",
    "predicted",
    "computed",
    "printed",
    "simulated",
)


# What a cell shows of a row: a format string over its fields, or a function.
Form = str | Callable[[Mapping[str, Any]], str]


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

  @classmethod
  def of_rows(
      cls,
      columns: Sequence[tuple[str, Form]],
      rows: Sequence[Mapping[str, Any]],
  ) -> "Table":
    """Makes a table of figures, a line for each row.

    Args:
      columns: head as in `of`, without commas, and what the cells below show.
        A format string gives an empty cell where one of its fields is None.
      rows: figures by name.

    Raises:
      ValueError: a kind is unknown.
      KeyError: a row has not a field.
    """
    body = [[_cell(form, row) for _, form in columns] for row in rows]
    return cls.of(",".join(head for head, _ in columns), body)

  def markdown(self) -> str:
    """The table in Markdown."""
    lines = [map(str, self.columns), ["---"] * len(self.columns), *self.body]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _cell(form: Form, row: Mapping[str, Any]) -> str:
  if callable(form):
    return form(row)
  fields = [name for _, name, _, _ in string.Formatter().parse(form) if name]
  if any(row[name] is None for name in fields):
    return ""
  return form.format_map(row)


def scaled(field: str, unit: float, form: str) -> Form:
  """What a cell shows of a field in another unit, such as 1e9 bytes."""
  return lambda row: f"{row[field] / unit:{form}}"


def number(value: float | None, form: str = ".2f", unit: str = "") -> str:
  """A number in a cell; nothing for None."""
  return "" if value is None else f"{value:{form}}{unit}"


def interval(value: float, low: float, high: float, unit: str = "") -> str:
  """An estimate with its range in brackets."""
  return f"{value:.2f}{unit} [{low:.2f}, {high:.2f}]"

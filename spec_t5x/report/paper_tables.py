"""The papers' tables row by row, ours beside the printed values.

Every printed row is there. Those whose models are not to be had stay empty on
our side; rows of ours that the paper has not follow at the end.
"""

import pathlib
from collections.abc import Sequence

from spec_t5x.report import (
    chen_tables,
    lenience_tables,
    reference,
    tables,
    theory_tables,
)
from spec_t5x.report.table import Table, interval, number
from spec_t5x.report.tables import Row


def _rows(runs: Sequence[pathlib.Path], rows_of) -> list[Row]:
  return [row for run in runs for row in rows_of(run)]


def _matches(ours: Sequence[Row], printed: Row) -> list[Row]:
  """Our rows of a printed row's task, draft, temperature and gamma."""
  return [
      row
      for row in ours
      if reference.paper_task(row["task"]) == printed["task"]
      and reference.paper_draft(row["task"], row["draft"]) == printed["draft"]
      and row["temperature"] == float(printed["temperature"])
      and row["gamma"] == int(printed["gamma"])
  ]


def _about(printed: Row) -> list[str]:
  return [printed[key] for key in ("task", "draft", "temperature", "gamma")]


def table2(runs: Sequence[pathlib.Path]) -> Table:
  """Walltime (Table 2)."""
  ours = _rows(runs, tables.walltime_rows)
  body = []
  for printed in reference.table("leviathan_table2_and_4"):
    for row in _matches(ours, printed) or [None]:
      body.append(
          [
              *_about(printed),
              f"{float(printed['alpha']):.2f}",
              _alpha(row),
              f"{printed['measured_speed']}x",
              _speed(row),
              row["run"] if row else "",
          ]
      )
  return Table.of(
      "task,draft,T,gamma,alpha|printed,alpha|measured,speed|printed,"
      "speed|measured,our run",
      body,
  )


def table4(runs: Sequence[pathlib.Path]) -> Table:
  """Expected against measured walltime (Table 4)."""
  ours = _rows(runs, tables.walltime_rows)
  computed = theory_tables.table4()
  body = []
  for printed, theirs in zip(
      reference.table("leviathan_table2_and_4"), computed, strict=True
  ):
    for row in _matches(ours, printed) or [None]:
      of = lambda key, form=".2f", unit="", row=row: number(
          row[key] if row else None, form, unit
      )
      body.append(
          [
              *_about(printed),
              printed["c"],
              of("cost_coefficient", ".3f"),
              of("verify_ratio"),
              f"{printed['expected_speed']}x",
              f"{theirs['expected_speed']:.2f}x",
              of("predicted_speed", unit="x"),
              of("predicted_speed_measured_v", unit="x"),
              f"{printed['measured_speed']}x",
              _speed(row),
          ]
      )
  return Table.of(
      "task,draft,T,gamma,c|printed,c|measured,v(gamma)|measured,"
      "expected|printed,their expected by formula|computed,"
      "ours with c|predicted,ours with c and v|predicted,speed|printed,"
      "speed|measured",
      body,
  )


def table3(runs: Sequence[pathlib.Path]) -> Table:
  """Acceptance rates (Table 3)."""
  ours = _rows(runs, tables.alpha_rows)
  body, shown = [], []
  for printed in reference.table("leviathan_table3"):
    found = [
        row
        for row in ours
        if reference.paper_target(row["task"]) == printed["target"]
        and reference.paper_draft(row["task"], row["draft"]) == printed["draft"]
    ]
    shown += found
    for row in found or [None]:
      body.append(_alphas(printed["target"], printed["draft"], printed, row))
  body += [
      _alphas(f"ours, {row['target']}, {row['task']}", row["draft"], None, row)
      for row in ours
      if row not in shown
  ]
  return Table.of(
      "target,draft,alpha T=0|printed,alpha T=0|measured,alpha T=1|printed,"
      "alpha T=1|measured,our target,our run",
      body,
  )


def _alphas(target, draft, printed: Row | None, row: Row | None) -> list[str]:
  cells = [target, draft]
  for key in ("alpha_t0", "alpha_t1"):
    cells.append(f"{float(printed[key]):.2f}" if printed else "")
    cells.append(number(row[key] if row else None))
  return cells + ([row["target"], row["run"]] if row else ["", ""])


def table5(runs: Sequence[pathlib.Path]) -> Table:
  """Alpha against lenience (Table 5, and A.5 for argmax)."""
  ours = _rows(runs, lenience_tables.rows)
  leniences = (1, 0.5, 0.3, 0.1)
  body = []
  for printed in reference.table("leviathan_table5_lenience"):
    temperature = 1 if printed["sampling"] == "standard" else 0
    found = {
        row["lenience"]: row["alpha"]
        for row in ours
        if row["task"] == "ende"
        and reference.paper_draft(row["task"], row["draft"]) == printed["draft"]
        and row["temperature"] == temperature
    }
    cells = [printed["sampling"], printed["draft"]]
    for lenience in leniences:
      cells.append(f"{float(printed[f'lenience_{lenience:g}']):.2f}")
      cells.append(number(found.get(lenience)))
    body.append(cells)
  head = ["sampling", "draft"]
  for lenience in leniences:
    head += [f"l = {lenience:g}|printed", f"l = {lenience:g}|measured"]
  return Table.of(",".join(head), body)


def chen_table1(runs: Sequence[pathlib.Path]) -> Table:
  """Speculative sampling (Table 1 of Chen et al. 2023)."""
  return chen_tables.table1_table(_rows(runs, chen_tables.table1_rows))


def _alpha(row: Row | None) -> str:
  if row is None:
    return ""
  return interval(row["alpha"], row["alpha_low"], row["alpha_high"])


def _speed(row: Row | None) -> str:
  if row is None:
    return ""
  return interval(
      row["measured_speed"], row["measured_low"], row["measured_high"], "x"
  )

"""Compiled for TPUs, and predicted from that: nothing here was run on one."""

import pathlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from spec_t5x import atomic
from spec_t5x.experiments.cells import CellStore
from spec_t5x.report import tpu_rows
from spec_t5x.report.table import Table
from spec_t5x.report.tables import Row, to_csv
from spec_t5x.tpu import chips

_INTRODUCTION = """\
# The loop on TPUs: compiled and predicted

Nothing here was run on a TPU. Programs were compiled by the TPU compiler for
described chips, one text at a time in bfloat16. Times are those of a roofline,
the greater of bytes over bandwidth and operations over peak, from exact counts
of one device's work; speeds follow by theorem 3.8 with the paper's alpha.

A roofline is a lower bound: it leaves out the fixed cost of operations, and the
latency of collectives between chips. It errs most for the smallest draft. The
target is split over the chips of a slice, the draft is held whole by each, so c
grows with the number of chips.
"""


def walltime_table(rows: Sequence[Row]) -> Table:
  """Table 2, the paper's figures beside ours."""
  return Table.of(
      "slice,task,draft,T,gamma,alpha|printed,c|printed,c|predicted,"
      "v(gamma)|predicted,expected speed|printed,measured speed|printed,"
      "speed with c|predicted,speed with c and v|predicted,"
      "with encoders|predicted",
      [
          [
              row["slice"],
              row["task"],
              row["draft"],
              f"{row['temperature']:g}",
              str(row["gamma"]),
              f"{row['alpha']:.2f}",
              f"{row['paper_cost_coefficient']:.2f}",
              f"{row['cost_coefficient']:.3f}",
              f"{row['verify_ratio']:.3f}",
              f"{row['paper_expected_speed']:.1f}x",
              f"{row['paper_speed']:.1f}x",
              f"{row['predicted_speed']:.2f}x",
              f"{row['predicted_speed_v']:.2f}x",
              f"{row['predicted_speed_encoders']:.2f}x",
          ]
          for row in rows
      ],
  )


def cost_table(rows: Sequence[Row]) -> Table:
  """Work of each call on one device."""
  return Table.of(
      "slice,task,model,call,weights GB|computed,caches MB|computed,"
      "activations MB|computed,operations G|computed,ms|predicted,"
      "over a target step|predicted",
      [
          [
              row["slice"],
              row["task"],
              row["model"],
              f"block of {row['block']}" if row["block"] else "encoder",
              f"{row['weight_bytes'] / 1e9:.3f}",
              f"{row['cache_bytes'] / 1e6:.1f}",
              f"{row['activation_bytes'] / 1e6:.1f}",
              f"{row['flops'] / 1e9:.1f}",
              f"{1e3 * row['seconds']:.3f}",
              f"{row['over_target_step']:.3f}",
          ]
          for row in rows
      ],
  )


def compiled_table(rows: Sequence[Row]) -> Table:
  """Memory on one device, and one iteration of the loop, as compiled."""
  return Table.of(
      "slice,draft,task,T,gamma,arguments GB|compiled,temporaries GB|compiled,"
      "share of memory|compiled,collectives an iteration|compiled,"
      "their MB|compiled,relayouts an iteration|compiled,their MB|compiled,"
      "relayouts outside MB|compiled,padding of the loop's arrays|compiled,"
      "compile s|measured",
      [
          [
              row["slice"],
              row["draft"],
              row["task"],
              f"{row['temperature']:g}",
              str(row["gamma"]),
              f"{row['argument_bytes'] / 1e9:.2f}",
              f"{row['temporary_bytes'] / 1e9:.2f}",
              f"{row['memory_share']:.0%}",
              row["collectives"] or "none",
              f"{row['collective_bytes'] / 1e6:.2f}",
              str(row["relayouts"]),
              f"{row['relayout_bytes'] / 1e6:.2f}",
              f"{row['outside_relayout_bytes'] / 1e6:.1f}",
              f"{row['carried_padded_bytes'] / row['carried_bytes'] - 1:.1%}",
              f"{row['compile_seconds']:.0f}",
          ]
          for row in rows
      ],
  )


def chip_table() -> Table:
  """The published figures that the roofline divides by."""
  return Table.of(
      "chip,memory GB|printed,bandwidth GB/s|printed,bfloat16 Tflop/s|printed,"
      "source",
      [
          [
              chip.name,
              f"{chip.memory / 1e9:.1f}",
              f"{chip.bandwidth / 1e9:.0f}",
              f"{chip.peak / 1e12:.0f}",
              chip.source,
          ]
          for chip in chips.CHIPS.values()
      ],
  )


class TpuTable(NamedTuple):
  """One kind of table.

  Attributes:
    name: of its CSV, without suffix.
    title: for readers.
    rows: all rows of a store.
    columns: of the CSV.
    table: the same rows for readers.
  """

  name: str
  title: str
  rows: Callable[[CellStore], list[Row]]
  columns: Sequence[str]
  table: Callable[[Sequence[Row]], Table]


TABLES = (
    TpuTable(
        "walltime",
        "Table 2: compiled and predicted, the paper's figures beside it",
        tpu_rows.walltime_rows,
        tpu_rows.WALLTIME_COLUMNS,
        walltime_table,
    ),
    TpuTable(
        "compiled",
        "Programs as compiled, on one device",
        tpu_rows.compiled_rows,
        tpu_rows.COMPILED_COLUMNS,
        compiled_table,
    ),
    TpuTable(
        "costs",
        "Model calls",
        tpu_rows.cost_rows,
        tpu_rows.COST_COLUMNS,
        cost_table,
    ),
)


def directories(results: pathlib.Path) -> list[pathlib.Path]:
  """Those of the results that hold cells of a TPU compiler, sorted."""
  found = {path.parents[1] for path in results.glob("*/cells/counts-*.jsonl")}
  return sorted(found)


def build(directory: pathlib.Path) -> list[pathlib.Path]:
  """Writes `tpu.md` and a CSV of each table; returns the files.

  The same cells give the same bytes.

  Args:
    directory: holds `cells`.
  """
  store = CellStore(directory / "cells")
  written, sections = [], [_INTRODUCTION]
  for each in TABLES:
    rows = each.rows(store)
    written.append(directory / f"{each.name}.csv")
    atomic.write_text(written[-1], to_csv(rows, each.columns))
    sections.append(f"## {each.title}\n\n{each.table(rows).markdown()}")
  sections.append(f"## Chips\n\n{chip_table().markdown()}")
  written.append(directory / "tpu.md")
  atomic.write_text(written[-1], "\n".join(sections))
  return written

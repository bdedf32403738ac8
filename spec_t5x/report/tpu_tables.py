"""Compiled for TPUs, and predicted from that: nothing here was run on one."""

import pathlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from spec_t5x import atomic
from spec_t5x.experiments.cells import CellStore
from spec_t5x.report import tpu_rows
from spec_t5x.report.table import Table, scaled
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
  return Table.of_rows(
      (
          ("slice", "{slice}"),
          ("task", "{task}"),
          ("draft", "{draft}"),
          ("T", "{temperature:g}"),
          ("gamma", "{gamma}"),
          ("alpha|printed", "{alpha:.2f}"),
          ("c|printed", "{paper_cost_coefficient:.2f}"),
          ("c|predicted", "{cost_coefficient:.3f}"),
          ("v(gamma)|predicted", "{verify_ratio:.3f}"),
          ("expected speed|printed", "{paper_expected_speed:.1f}x"),
          ("measured speed|printed", "{paper_speed:.1f}x"),
          ("speed with c|predicted", "{predicted_speed:.2f}x"),
          ("speed with c and v|predicted", "{predicted_speed_v:.2f}x"),
          ("with encoders|predicted", "{predicted_speed_encoders:.2f}x"),
      ),
      rows,
  )


def cost_table(rows: Sequence[Row]) -> Table:
  """Work of each call on one device."""
  call = lambda row: f"block of {row['block']}" if row["block"] else "encoder"
  return Table.of_rows(
      (
          ("slice", "{slice}"),
          ("task", "{task}"),
          ("model", "{model}"),
          ("call", call),
          ("weights GB|computed", scaled("weight_bytes", 1e9, ".3f")),
          ("caches MB|computed", scaled("cache_bytes", 1e6, ".1f")),
          ("activations MB|computed", scaled("activation_bytes", 1e6, ".1f")),
          ("operations G|computed", scaled("flops", 1e9, ".1f")),
          ("ms|predicted", scaled("seconds", 1e-3, ".3f")),
          ("over a target step|predicted", "{over_target_step:.3f}"),
      ),
      rows,
  )


def compiled_table(rows: Sequence[Row]) -> Table:
  """Memory on one device, and one iteration of the loop, as compiled."""
  padding = lambda row: (
      f"{row['carried_padded_bytes'] / row['carried_bytes'] - 1:.1%}"
  )
  return Table.of_rows(
      (
          ("slice", "{slice}"),
          ("draft", "{draft}"),
          ("task", "{task}"),
          ("T", "{temperature:g}"),
          ("gamma", "{gamma}"),
          ("arguments GB|compiled", scaled("argument_bytes", 1e9, ".2f")),
          ("temporaries GB|compiled", scaled("temporary_bytes", 1e9, ".2f")),
          ("share of memory|compiled", "{memory_share:.0%}"),
          (
              "collectives an iteration|compiled",
              lambda row: row["collectives"] or "none",
          ),
          ("their MB|compiled", scaled("collective_bytes", 1e6, ".2f")),
          ("relayouts an iteration|compiled", "{relayouts}"),
          ("their MB|compiled", scaled("relayout_bytes", 1e6, ".2f")),
          (
              "relayouts outside MB|compiled",
              scaled("outside_relayout_bytes", 1e6, ".1f"),
          ),
          ("padding of the loop's arrays|compiled", padding),
          ("compile CPU s|measured", "{compile_cpu_seconds:.0f}"),
      ),
      rows,
  )


def chip_table() -> Table:
  """The published figures that the roofline divides by."""
  return Table.of_rows(
      (
          ("chip", "{name}"),
          ("memory GB|printed", scaled("memory", 1e9, ".1f")),
          ("bandwidth GB/s|printed", scaled("bandwidth", 1e9, ".0f")),
          ("bfloat16 Tflop/s|printed", scaled("peak", 1e12, ".0f")),
          ("source", "{source}"),
      ),
      [chip._asdict() for chip in chips.CHIPS.values()],
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

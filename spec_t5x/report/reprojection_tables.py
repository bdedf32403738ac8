"""Does re-projecting the encoder's output explain speeds above the formula?

A baseline that projects cross-attention keys and values in every step is slower
by a factor, and speculative decoding that does not is faster by that factor
than Theorem 3.8 says (Leviathan et al. 2023, A.3). The factor is measured here
by input length, forced and as the compiler makes it.
"""

import pathlib
import statistics
from collections.abc import Sequence

import numpy as np

from spec_t5x import theory
from spec_t5x.decoding_types import Counts
from spec_t5x.experiments.cells import CellStore
from spec_t5x.experiments.reprojection import PROJECTIONS
from spec_t5x.report.table import Table, scaled
from spec_t5x.report.tables import Row, run_name
from spec_t5x.statistics import DecodeStatistics
from spec_t5x.tpu import chips, roofline
from spec_t5x.tpu.counting import Work

COLUMNS = (
    "length,gamma,alpha,step_ratio,plain_ratio_as_written,"
    "plain_ratio_every_step,formula_once,formula_every_step,speed_once,"
    "speed_as_written,speed_every_step,speed_against_reprojecting,run"
).split(",")
WORK_COLUMNS = (
    "slice,length,weight_bytes,cache_bytes,activation_bytes,flops,"
    "reprojecting_weight_bytes,reprojecting_flops,step_ms,"
    "reprojecting_step_ms,step_ratio,run"
).split(",")
PROGRAM_COLUMNS = "projection,matmuls_in_loops,projections,device,run".split(
    ","
)


def rows(run: pathlib.Path) -> list[Row]:
  """A row per input length; none if the run measured no re-projection."""
  store = CellStore(run / "cells")
  found = [
      _row(store, run, name)
      for name in store.names("decode-n")
      if name.replace("decode", "steps", 1) in store
  ]
  return sorted(found, key=lambda row: row["length"])


def _row(store: CellStore, run: pathlib.Path, name: str) -> Row:
  about, decodes = store.read(name)
  _, steps = store.read(name.replace("decode", "steps", 1))
  step = {
      (row["projection"], row["model"], row["block"]): statistics.median(
          row["seconds"]
      )
      for row in steps
  }
  counts = DecodeStatistics.pool(
      DecodeStatistics.from_row(*Counts(**row["once"]["speculative"]["counts"]))
      for row in decodes
  )
  formula = lambda projection: float(
      theory.walltime_improvement(
          counts.alpha_hat,
          about["gamma"],
          step[projection, "draft", 1] / step[projection, "target", 1],
      )
  )
  return {
      "length": about["length"],
      "gamma": about["gamma"],
      "alpha": counts.alpha_hat,
      "step_ratio": step["every_step", "target", 1] / step["once", "target", 1],
      "formula_once": formula("once"),
      "formula_every_step": formula("every_step"),
      **_ratios(decodes),
      "run": run_name(run),
  }


def _ratios(decodes: Sequence[Row]) -> Row:
  """Medians over passes of ratios of the seconds of all texts."""
  seconds = {
      (projection, which): np.sum(
          [
              np.add(
                  row[projection][which]["encode_seconds"],
                  row[projection][which]["decode_seconds"],
              )
              for row in decodes
          ],
          axis=0,
      )
      for projection in PROJECTIONS
      for which in ("plain", "speculative")
  }
  ratio = lambda above, below: float(np.median(seconds[above] / seconds[below]))
  plain = ("once", "plain")
  return {
      "plain_ratio_as_written": ratio(("as_written", "plain"), plain),
      "plain_ratio_every_step": ratio(("every_step", "plain"), plain),
      **{
          f"speed_{projection}": ratio(
              (projection, "plain"), (projection, "speculative")
          )
          for projection in PROJECTIONS
      },
      "speed_against_reprojecting": ratio(
          ("every_step", "plain"), ("once", "speculative")
      ),
  }


def programs(run: pathlib.Path) -> list[Row]:
  """What the compiler left in the loop, for each way to project."""
  store = CellStore(run / "cells")
  found = []
  for name in store.names("program"):
    about, counted = store.read(name)
    found += [row | about | {"run": run_name(run)} for row in counted]
  return found


def work(run: pathlib.Path) -> list[Row]:
  """A decode step on a TPU by the roofline, projecting once and in each."""
  store = CellStore(run / "cells")
  found = []
  for name in store.names("work-n"):
    about, counted = store.read(name)
    chip = chips.CHIPS[chips.find_slice(about["slice"]).chip]
    once, again = (
        Work(*(row[field] for field in Work._fields))
        for projection in ("once", "every_step")
        for row in counted
        if row["projection"] == projection
    )
    seconds = roofline.seconds(once, chip), roofline.seconds(again, chip)
    found.append(
        {
            "slice": about["slice"],
            "length": about["length"],
            **once._asdict(),
            "reprojecting_weight_bytes": again.weight_bytes,
            "reprojecting_flops": again.flops,
            "step_ms": 1e3 * seconds[0],
            "reprojecting_step_ms": 1e3 * seconds[1],
            "step_ratio": seconds[1] / seconds[0],
            "run": run_name(run),
        }
    )
  return sorted(found, key=lambda row: row["length"])


def work_table(rows: Sequence[Row]) -> Table:
  """A line per input length."""
  return Table.of_rows(
      (
          ("slice", "{slice}"),
          ("input tokens", "{length}"),
          ("weights GB|computed", scaled("weight_bytes", 1e9, ".2f")),
          ("operations G|computed", scaled("flops", 1e9, ".0f")),
          (
              "weights GB re-projecting|computed",
              scaled("reprojecting_weight_bytes", 1e9, ".2f"),
          ),
          (
              "operations G re-projecting|computed",
              scaled("reprojecting_flops", 1e9, ".0f"),
          ),
          ("step ms|predicted", "{step_ms:.2f}"),
          ("step ms re-projecting|predicted", "{reprojecting_step_ms:.2f}"),
          ("ratio|predicted", "{step_ratio:.2f}"),
      ),
      rows,
  )


def table(rows: Sequence[Row]) -> Table:
  """A line per input length."""
  return Table.of_rows(
      (
          ("input tokens", "{length}"),
          ("gamma", "{gamma}"),
          ("alpha|measured", "{alpha:.2f}"),
          ("target step: every step / once|measured", "{step_ratio:.2f}"),
          (
              "plain decoding: every step / once|measured",
              "{plain_ratio_every_step:.2f}",
          ),
          (
              "plain decoding: as written / once|measured",
              "{plain_ratio_as_written:.2f}",
          ),
          ("Thm 3.8 once|predicted", "{formula_once:.2f}x"),
          ("Thm 3.8 every step|predicted", "{formula_every_step:.2f}x"),
          ("speed once|measured", "{speed_once:.2f}x"),
          ("speed as written|measured", "{speed_as_written:.2f}x"),
          ("speed every step|measured", "{speed_every_step:.2f}x"),
          (
              "once against plain every step|measured",
              "{speed_against_reprojecting:.2f}x",
          ),
      ),
      rows,
  )


def program_table(rows: Sequence[Row]) -> Table:
  """A line per way to project."""
  return Table.of_rows(
      (
          ("projection", lambda row: row["projection"].replace("_", " ")),
          ("matrix products in the loop|compiled", "{matmuls_in_loops}"),
          ("projections of the decoder", "{projections}"),
          ("compiled for", "{device}"),
      ),
      rows,
  )

"""The tables made from runs, by name: for CSV, Markdown and the page."""

import pathlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from spec_t5x.report import (
    chen_tables,
    lenience_tables,
    position_tables,
    prediction_tables,
    reprojection_tables,
    tables,
    timeline,
)
from spec_t5x.report.table import Table
from spec_t5x.report.tables import Row


class Section(NamedTuple):
  """One kind of table.

  Attributes:
    name: of its files, without suffix.
    title: for readers.
    note: one line on how to read it.
    columns: of the CSV.
    rows: all rows of a run; none if the run did not measure this.
    table: the same rows for readers.
  """

  name: str
  title: str
  note: str
  columns: Sequence[str]
  rows: Callable[[pathlib.Path], list[Row]]
  table: Callable[[Sequence[Row]], Table]


def _errors(run: pathlib.Path) -> list[Row]:
  return prediction_tables.errors(prediction_tables.rows(run))


SECTIONS = (
    Section(
        "walltime",
        "Walltime",
        "Plain over speculative seconds of the same texts, encoders included;"
        " in brackets the 95% interval over texts and the range of the passes,"
        " whichever reaches further. Alpha has its 95% interval over texts."
        " Quality is that of the texts which alpha is"
        " averaged over, and of the same texts decoded with the gamma in the"
        " middle; their difference has a 95% interval by a paired bootstrap.",
        tables.WALLTIME_COLUMNS,
        tables.walltime_rows,
        tables.walltime_table,
    ),
    Section(
        "alpha",
        "Acceptance rate",
        "The mean of sum min(p, q) over tokens that the target generated"
        " (Corollary 3.6).",
        tables.ALPHA_COLUMNS,
        tables.alpha_rows,
        tables.alpha_table,
    ),
    Section(
        "lenience",
        "Lenience",
        "Lossy below 1. The distance is the total variation between the law of"
        " a tested token and the target's, 0 to 1. Quality as in the walltime"
        " table.",
        lenience_tables.COLUMNS,
        lenience_tables.rows,
        lenience_tables.table,
    ),
    Section(
        "positions",
        "Acceptance by place in the block",
        "Accepted of tested tokens, with Wilson's 95% interval. If the"
        " acceptances were independent and alike, as Equation 1 takes them, all"
        " places would have one rate; p is the probability of rates that"
        " differ this much or more by chance.",
        position_tables.COLUMNS,
        position_tables.rows,
        position_tables.table,
    ),
    Section(
        "predictions",
        "Theorem 3.8 in its forms",
        "Each form adds what the one before it leaves out: v, the acceptance"
        " by place, the two-token first draft step.",
        prediction_tables.COLUMNS,
        prediction_tables.rows,
        prediction_tables.table,
    ),
    Section(
        "prediction_errors",
        "How far the theorem is off",
        "Predicted over measured speed without encoders, less 1, over all"
        " cells of a run.",
        prediction_tables.ERROR_COLUMNS,
        _errors,
        prediction_tables.error_table,
    ),
    Section(
        "chen_table1",
        "Table 1 of Chen et al. 2023",
        "The loop's time alone, encoders left out; their K is gamma, of ours"
        " the one closest to 4. Brackets and quality as in the walltime table.",
        chen_tables.COLUMNS,
        chen_tables.table1_rows,
        chen_tables.table1_table,
    ),
    Section(
        "chen_figure1",
        "Figure 1 of Chen et al. 2023",
        "Against K, which is gamma; 0 is plain decoding. Acceptance in their"
        " sense: tokens that a loop yields, over K + 1.",
        chen_tables.COLUMNS,
        chen_tables.rows,
        chen_tables.figure1_table,
    ),
    Section(
        "timeline",
        "One decode, call by call",
        "Calls as long as they take by themselves (medians), as many as this"
        " decode needed; their sum, and what the decode took.",
        timeline.COLUMNS,
        timeline.rows,
        timeline.table,
    ),
    Section(
        "reprojection",
        "Projecting the encoder's output once, or in every step",
        "Seconds of plain decoding that re-projects over plain decoding that"
        " does not, and the speeds of all pairings.",
        reprojection_tables.COLUMNS,
        reprojection_tables.rows,
        reprojection_tables.table,
    ),
    Section(
        "reprojection_work",
        "A step of the target on a TPU, projecting once or in every step",
        "By a roofline, from counted bytes and operations; nothing was run.",
        reprojection_tables.WORK_COLUMNS,
        reprojection_tables.work,
        reprojection_tables.work_table,
    ),
    Section(
        "reprojection_programs",
        "What the compiler leaves in the loop",
        "Stock T5X writes the projections into the step; the compiler may move"
        " them in front of the loop.",
        reprojection_tables.PROGRAM_COLUMNS,
        reprojection_tables.programs,
        reprojection_tables.program_table,
    ),
)

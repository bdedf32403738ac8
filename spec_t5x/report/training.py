"""Curves of the shipped models' training, from the logs of the runs."""

import json
import pathlib
from collections.abc import Sequence

from matplotlib import pyplot as plt

from spec_t5x import atomic
from spec_t5x.report import figures
from spec_t5x.report.table import Table, number
from spec_t5x.report.tables import Row, to_csv

COLUMNS = (
    "run",
    "recipe",
    "steps",
    "loss",
    "held_out_loss",
    "bleu",
    "looping",
    "hours",
)
TITLE = "Training of the shipped models"
NOTE = """\
Each line is the end of a run of `python scripts/train.py --gin_file=<recipe>`;
`curves/<run>.jsonl` is its whole log. Losses are nats per token, the held-out
one on the validation split; BLEU and the percentage of looping outputs are of
its first 128 texts, decoded by argmax. Hours are of 2 CPU cores that other
work shared.

"""


def build(directory: pathlib.Path) -> list[pathlib.Path]:
  """Writes table and figure beside `curves`; returns the files.

  Args:
    directory: holds `curves/<run>.jsonl`, as training writes them; may not
      exist.
  """
  found = rows(directory)
  if not found:
    return []
  csv, markdown = directory / "training.csv", directory / "training.md"
  atomic.write_text(csv, to_csv(found, COLUMNS))
  atomic.write_text(
      markdown, f"# {TITLE}\n\n{NOTE}\n\n{table(found).markdown()}"
  )
  return [csv, markdown, *_draw(_curves(directory), directory / "curves")]


def rows(directory: pathlib.Path) -> list[Row]:
  """The end of each curve; none if there is no curve."""
  return [_row(run, curve) for run, curve in _curves(directory).items()]


def _curves(directory: pathlib.Path) -> dict[str, list[Row]]:
  return {
      path.stem: list(map(json.loads, path.read_text("utf-8").splitlines()))
      for path in sorted((directory / "curves").glob("*.jsonl"))
  }


def _row(run: str, curve: Sequence[Row]) -> Row:
  last = curve[-1]
  return {
      "run": run,
      "recipe": f"configs/experiments/train_{run}.gin",
      "steps": last["step"],
      "loss": last["loss"],
      "held_out_loss": last["held_out_loss"],
      "bleu": last.get("bleu"),
      "looping": last.get("looping"),
      "hours": last["seconds"] / 3600,
  }


def table(rows: Sequence[Row]) -> Table:
  """A line per run."""
  return Table.of(
      "run,recipe,steps,loss|measured,held-out loss|measured,BLEU|measured,"
      "looping|measured,hours|measured",
      [
          [
              row["run"],
              f"`{row['recipe']}`",
              f"{row['steps']:,}",
              f"{row['loss']:.3f}",
              f"{row['held_out_loss']:.3f}",
              number(row["bleu"], ".1f"),
              number(row["looping"], ".1f", "%"),
              f"{row['hours']:.2f}",
          ]
          for row in rows
      ],
  )


def _draw(curves, path: pathlib.Path) -> list[pathlib.Path]:
  """Held-out losses against steps; training losses dotted."""
  with plt.rc_context(figures.STYLE):
    figure, axis = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for place, (run, curve) in enumerate(curves.items()):
      column = lambda name, curve=curve: [row[name] for row in curve]
      steps, color = column("step"), f"C{place}"
      axis.plot(steps, column("held_out_loss"), color=color, label=run)
      axis.plot(steps, column("loss"), ":", color=color)
    axis.set_xlabel("steps of 1,024 positions")
    axis.set_ylabel("nats per token")
    axis.set_title("Held-out loss; dotted: of the batches trained on")
    axis.legend(fontsize=7)
    return figures.save(figure, path)

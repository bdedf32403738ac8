"""Training of the measured models, from logs and provenances of runs."""

import json
import pathlib
from collections.abc import Sequence

from matplotlib import pyplot as plt

from spec_t5x import atomic
from spec_t5x.report import figures
from spec_t5x.report.table import Table
from spec_t5x.report.tables import Row, to_csv

COLUMNS = (
    "run,recipe,steps,loss,held_out_loss,bleu,looping,hours,starts,"
    "known_from_step,commits,devices"
).split(",")
TITLE = "Training of the models"
NOTE = """\
Each line is the end of a run of `python scripts/train.py --gin_file=<recipe>`;
`curves/<run>.jsonl` is its whole log, and `provenance/<run>.jsonl`, where it
was kept, what each start of it began from: commit, settings, data, versions,
device. Losses are nats per token, the held-out one on the validation splits of
the tasks trained on: `ende_*` saw translation alone, `lm_*` are decoder-only
and saw the English of both tasks, the others saw both, so losses of different
kinds do not compare. BLEU and the percentage of looping outputs are of the
first texts of such a split, decoded by argmax. Hours are on the clock, whatever
else the machine did. All are shipped but `lm_*`, for their size, and those that
others were trained on from: `ende_small`, `ende_small_distilled`, `ende_target`
and `ende_target_shallow`.
"""


def build(directory: pathlib.Path) -> list[pathlib.Path]:
  """Writes table and figure beside `curves`; returns the files.

  Args:
    directory: holds `curves/<run>.jsonl` and `provenance/<run>.jsonl`, copies
      of the files `log.jsonl` and `provenance.jsonl` that training exports
      with a model; may not exist.
  """
  found = rows(directory)
  if not found:
    return []
  csv, markdown = directory / "training.csv", directory / "training.md"
  atomic.write_text(csv, to_csv(found, COLUMNS))
  atomic.write_text(markdown, f"# {TITLE}\n\n{NOTE}\n{table(found).markdown()}")
  curves = _read(directory / "curves")
  return [csv, markdown, *_draw(curves, directory / "curves")]


def rows(directory: pathlib.Path) -> list[Row]:
  """The end of each curve; none if there is no curve."""
  starts = _read(directory / "provenance")
  return [
      _end(run, curve) | _origin(starts.get(run, []))
      for run, curve in _read(directory / "curves").items()
  ]


def _read(directory: pathlib.Path) -> dict[str, list[Row]]:
  """The JSON lines of each run."""
  return {
      path.stem: list(map(json.loads, path.read_text("utf-8").splitlines()))
      for path in sorted(directory.glob("*.jsonl"))
  }


def _end(run: str, curve: Sequence[Row]) -> Row:
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


def _origin(starts: Sequence[Row]) -> Row:
  """What the starts of a run tell, see `spec_t5x.provenance`; else None."""
  listed = lambda values: ", ".join(dict.fromkeys(values)) or None
  return {
      "starts": len(starts) or None,
      "known_from_step": starts[0]["start_step"] if starts else None,
      "commits": listed(map(_commit, starts)),
      "devices": listed(start["device"] for start in starts),
  }


def _commit(start: Row) -> str:
  commit = (start["commit"] or "unknown")[:9]
  return f"{commit} with changes" if start["dirty"] else commit


def _provenance(row: Row) -> str:
  if row["starts"] is None:
    return "none was kept"
  starts = "1 start" if row["starts"] == 1 else f"{row['starts']} starts"
  return f"{starts}, from step {row['known_from_step']:,} on: {row['commits']}"


def table(rows: Sequence[Row]) -> Table:
  """A line per run."""
  return Table.of_rows(
      (
          ("run", "{run}"),
          ("recipe", "`{recipe}`"),
          ("steps", "{steps:,}"),
          ("loss|measured", "{loss:.3f}"),
          ("held-out loss|measured", "{held_out_loss:.3f}"),
          ("BLEU|measured", "{bleu:.1f}"),
          ("looping|measured", "{looping:.1f}%"),
          ("hours|measured", "{hours:.2f}"),
          ("provenance", _provenance),
          ("device", "{devices}"),
      ),
      rows,
  )


def _draw(curves, path: pathlib.Path) -> list[pathlib.Path]:
  """Held-out losses against steps; training losses dotted."""
  colors = plt.get_cmap("tab20").colors
  with plt.rc_context(figures.STYLE):
    figure, axis = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for place, (run, curve) in enumerate(curves.items()):
      column = lambda name, curve=curve: [row[name] for row in curve]
      steps, color = column("step"), colors[place % len(colors)]
      axis.plot(steps, column("held_out_loss"), color=color, label=run)
      axis.plot(steps, column("loss"), ":", color=color)
    axis.set_xlabel("steps")
    axis.set_ylabel("nats per token")
    axis.set_title("Held-out loss; dotted: of the batches trained on")
    axis.legend(fontsize=7)
    return figures.save(figure, path)

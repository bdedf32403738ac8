"""The sweep as a job: progress on the terminal, tables at the end."""

import dataclasses
import pathlib
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from spec_t5x import processes
from spec_t5x.experiments.sweep import Sweep, SweepRun
from spec_t5x.report import build, tables


def summary(rows: Sequence[tables.Row]) -> Table:
  """What of the walltime table a terminal of 80 columns can show."""
  table = Table(
      title="Walltime",
      caption=(
          "alpha, c, v(gamma), speed: measured; expected: Theorem 3.8 with c"
          " and v(gamma); paper: printed, of T5-XXL"
      ),
      box=box.SIMPLE_HEAD,
      padding=(0, 1, 0, 0),
      pad_edge=False,
      show_edge=False,
  )
  heads = "draft,T,gamma,alpha,c,v(gamma),expected,speed,paper".split(",")
  for head in heads:
    table.add_column(head, justify="left" if head == "draft" else "right")
  for row in rows:
    paper = row["paper_speed"]
    table.add_row(
        row["draft"],
        f"{row['temperature']:g}",
        str(row["gamma"]),
        f"{row['alpha']:.2f}",
        f"{row['cost_coefficient']:.3f}",
        f"{row['verify_ratio']:.2f}",
        f"{row['predicted_speed_measured_v']:.2f}x",
        f"{row['measured_speed']:.2f}x",
        "" if paper is None else f"{paper:.1f}x",
    )
  return table


@dataclasses.dataclass(frozen=True)
class SweepJob:
  """Runs a sweep, or what is left of it, and makes its tables.

  Attributes:
    sweep: what to measure.
    run: names this run of the experiment, such as the machine it ran on.
    results: directory that all results are under.
  """

  sweep: Sweep
  run: str
  results: str = "results"

  @property
  def directory(self) -> pathlib.Path:
    """Where the results are."""
    return pathlib.Path(self.results) / self.sweep.name / self.run

  def execute(self) -> None:
    """Measures missing cells; a killed run is resumed by the same call."""
    console = Console(quiet=not processes.is_first())
    run = SweepRun(self.sweep, self.directory)
    cells, missing = list(run.cells()), run.missing()
    console.print(
        f"{self.directory}: {len(cells)} cells, {len(missing)} to measure."
    )
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    ) as progress:
      bar = progress.add_task("", total=len(cells))
      done = iter(range(len(cells)))
      run.run(
          lambda name: progress.update(
              bar, description=name, completed=next(done)
          )
      )
      progress.update(bar, description="all cells", completed=len(cells))
    processes.on_first(lambda: self._report(console))

  def _report(self, console: Console) -> None:
    """Makes the tables of all runs again, and shows those of this one."""
    with console.status("Tables and figures"):
      written = build.build(pathlib.Path(self.results))
    console.print(
        f"{len(written)} tables and figures written; {self.results}/index.html"
        " shows them."
    )
    rows = tables.walltime_rows(self.directory)
    alphas = tables.alpha_table(tables.alpha_rows(self.directory))
    console.print(Markdown(alphas.markdown()))
    console.print(summary(rows))
    for temperature in self.sweep.temperatures:
      row = tables.best(rows, temperature)
      console.print(
          f"Fastest at temperature {temperature:g}: {row['draft']}, gamma"
          f" {row['gamma']}, {row['measured_speed']:.2f}x"
          f" ({row['measured_low']:.2f} to {row['measured_high']:.2f})."
      )

"""What a decode job measured, pooled over its batches."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from rich import progress
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spec_t5x.decode_batches import BatchResult
from spec_t5x.statistics import DecodeStatistics


@dataclasses.dataclass(frozen=True)
class Summary:
  """Counts and times of a job, over all runs that it took.

  Attributes:
    outputs: the file written.
    num_inputs: its lines.
    block_verification: whether blocks were verified as a whole; accepted /
      tested does not estimate alpha then, the mean overlap does.
    statistics: counts, pooled over all decodes.
    seconds: decoding all batches, compilation included.
    warm_seconds: decoding all but the first batch of each shape in a process.
    warm_emitted: tokens of the decodes that `warm_seconds` is the time of.
  """

  outputs: str
  num_inputs: int
  block_verification: bool
  statistics: DecodeStatistics
  seconds: float
  warm_seconds: float
  warm_emitted: int

  @classmethod
  def pool(
      cls,
      outputs: str,
      block_verification: bool,
      batches: Sequence[BatchResult],
  ) -> "Summary":
    """Adds up batches."""
    warm = [batch for batch in batches if not batch.is_first]
    return cls(
        outputs=outputs,
        num_inputs=sum(len(batch.records) for batch in batches),
        block_verification=block_verification,
        statistics=DecodeStatistics.pool(batch.statistics for batch in batches),
        seconds=sum(batch.seconds for batch in batches),
        warm_seconds=sum(batch.seconds for batch in warm),
        warm_emitted=sum(batch.statistics.emitted for batch in warm),
    )

  @classmethod
  def from_dict(cls, fields: dict[str, Any]) -> "Summary":
    """Restores what `to_dict` made."""
    own = fields["fields"]
    statistics = DecodeStatistics.from_row(**own["statistics"])
    return cls(**{**own, "statistics": statistics})

  @property
  def alpha(self) -> float:
    """Acceptance rate; NaN if no drafted token was tested."""
    if self.block_verification:
      return self.statistics.alpha_exact
    return self.statistics.alpha_hat

  @property
  def tokens_per_second(self) -> float | None:
    """Without compilation; None if no batch came after its shape's first."""
    if not self.warm_seconds:
      return None
    return self.warm_emitted / self.warm_seconds

  @property
  def tokens_per_second_with_compilation(self) -> float:
    """Over all batches."""
    return self.statistics.emitted / self.seconds

  def to_dict(self) -> dict[str, Any]:
    """Returns the fields for `from_dict`, and what follows from them."""
    return {
        "fields": dataclasses.asdict(self),
        "alpha": self.alpha if self.statistics.tested else None,
        "block_efficiency": self.statistics.block_efficiency,
        "tokens_per_second": self.tokens_per_second,
    }

  def table(self) -> Table:
    """Returns the summary for a terminal."""
    statistics = self.statistics
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    # A long path is broken rather than cut, to be copied whole.
    table.add_column(overflow="fold")
    # As `Text`, since a path may look like markup.
    table.add_row("outputs", Text(self.outputs))
    table.add_row("lines", f"{self.num_inputs:,}")
    table.add_row(
        "tokens",
        f"{statistics.emitted:,} in {statistics.iterations:,} iterations",
    )
    if statistics.tested:
      table.add_row("alpha", f"{self.alpha:.3f} ({self._about_alpha()})")
    table.add_row(
        "block efficiency",
        f"{statistics.block_efficiency:.2f} tokens per target call"
        f" (gamma {statistics.gamma}: at most {statistics.gamma + 1})",
    )
    table.add_row("speed", self._speed())
    return table

  def _about_alpha(self) -> str:
    statistics = self.statistics
    if self.block_verification:
      return f"mean overlap of the laws at {statistics.tested:,} tokens"
    low, high = statistics.alpha_interval()
    return (
        f"95 % interval {low:.3f} to {high:.3f};"
        f" {statistics.accepted:,} of {statistics.tested:,} tested tokens"
    )

  def _speed(self) -> str:
    everything = (
        f"{self.tokens_per_second_with_compilation:,.0f} tokens/s over"
        f" {self.seconds:.2f} s, compilation included"
    )
    if self.tokens_per_second is None:
      return everything + " (no batch came without)"
    return (
        f"{self.tokens_per_second:,.0f} tokens/s over"
        f" {self.warm_seconds:.2f} s, first batch of each shape left out\n"
        + everything
    )


class DecodeProgress(progress.Progress):
  """Progress bar of a job: inputs decoded, time left, speed so far."""

  def __init__(self, console: Console, num_inputs: int):
    """Makes the bar; to be used as a context.

    Args:
      console: where to show it.
      num_inputs: of the job.
    """
    super().__init__(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(bar_width=24),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("elapsed"),
        progress.TimeRemainingColumn(),
        progress.TextColumn("left"),
        progress.TextColumn("{task.fields[speed]}"),
        console=console,
    )
    self._task = self.add_task("Decoding", total=num_inputs, speed="")
    self._iterations = self._emitted = 0

  def announce(self, rows: int, width: int, is_first: bool) -> None:
    """Shows the batch that is being decoded."""
    what = "Compiling" if is_first else "Decoding"
    self.update(self._task, description=f"{what} {rows} x {width}")

  def add(self, *results: BatchResult) -> None:
    """Shows what has been decoded."""
    for result in results:
      self._iterations += result.statistics.iterations
      self._emitted += result.statistics.emitted
      per_call = self._emitted / self._iterations
      self.update(
          self._task,
          description="Decoding",
          advance=len(result.records),
          speed=f"{per_call:.2f} tokens/call",
      )

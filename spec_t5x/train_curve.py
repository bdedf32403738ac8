"""The curve of a run: one JSON object a line."""

import json
import math
import os
import pathlib
import time
from typing import Any

from jaxtyping import Array, Float, Int

from spec_t5x import atomic, processes


class Curve:
  """Losses of the steps since the last row, and the rows.

  In a job of several processes the first one writes them.

  Attributes:
    last_loss: of the last step that was looked at, nats per token.
  """

  def __init__(self, path: str | os.PathLike[str], step: int):
    """Opens a curve to be continued.

    Args:
      path: JSON lines. Rows past `step` are dropped: they come again.
      step: of the checkpoint.
    """
    self._path = pathlib.Path(path)
    text = self._path.read_text() if self._path.exists() else ""
    # A kill may have left a part of a line.
    rows = text.split("\n")[:-1]
    kept = [row for row in rows if json.loads(row)["step"] <= step]
    if processes.is_first():
      atomic.write_text(self._path, "".join(row + "\n" for row in kept))
    self._step = step
    self._seconds = json.loads(kept[-1])["seconds"] if kept else 0.0
    self.last_loss = math.nan
    self._pending = None
    self._reset()

  def _reset(self) -> None:
    self._nats, self._tokens = 0.0, 0
    self._started = self._flushed = time.monotonic()

  def add(self, nats: Float[Array, ""], count: Int[Array, ""]) -> None:
    """Adds a step; looks at the one before, so that no device has to wait.

    Raises:
      FloatingPointError: the loss of the step before is not finite.
    """
    self.flush()
    self._pending = nats, count

  def flush(self) -> None:
    """Waits for the last step and looks at it.

    Raises:
      FloatingPointError: its loss is not finite.
    """
    if self._pending is None:
      return
    nats, count = float(self._pending[0]), int(self._pending[1])
    self._pending = None
    self._step += 1
    if not math.isfinite(nats):
      raise FloatingPointError(f"The loss of step {self._step} is {nats}.")
    self._flushed = time.monotonic()
    self._nats += nats
    self._tokens += count
    self.last_loss = nats / max(count, 1)

  def write(
      self, step: int, held_out: float, quality: dict[str, float]
  ) -> dict[str, Any]:
    """Writes a row about the steps since the last one, and returns it.

    `loss` and `held_out_loss` are nats per token; `seconds` counts all runs
    and all work, the speed that of training alone.
    """
    self._seconds += time.monotonic() - self._started
    training = max(self._flushed - self._started, 1e-9)
    row = {
        "step": step,
        "loss": round(self._nats / max(self._tokens, 1), 4),
        "held_out_loss": round(held_out, 4),
        **{name: round(value, 2) for name, value in quality.items()},
        "target_tokens_per_second": round(self._tokens / training),
        "seconds": round(self._seconds, 1),
    }
    if processes.is_first():
      with self._path.open("a") as file:
        file.write(json.dumps(row) + "\n")
    self._reset()
    return row

"""The training job: from data and a configuration to a weights directory."""

import contextlib
import dataclasses
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache
from rich import progress
from rich.console import Console

from spec_t5x import (
    checkpoints,
    grow,
    optimizers,
    partitioning,
    processes,
    provenance,
    train,
)
from spec_t5x.config import T5Config
from spec_t5x.model import find, load
from spec_t5x.optimizers import Schedule
from spec_t5x.train_data import Data
from spec_t5x.train_quality import Quality
from spec_t5x.types import Params
from spec_t5x.vocabulary import SHIPPED_PATH, Vocabulary


@dataclasses.dataclass(frozen=True)
class TrainJob:
  """Trains a model. The same job, run again, carries on where it stopped.

  Attributes:
    directory: of the run. Gets the newest state, the curve (`log.jsonl`), what
      each start began from (`provenance.jsonl`), the compiled programs, and
      the trained weights (`model`, a Hugging Face directory with vocabulary,
      curve and starts) whenever the job stops.
    data: what to train on.
    config: of a new model; if `init_from` is given too, a deeper one to grow
      that model to. None takes the configuration of `init_from`.
    init_from: directory or hub name of weights to start from, any format.
    teacher: directory or hub name of a target whose laws the model learns at
      every token of the data; None to learn the tokens.
    optimizer: 'adafactor' or 'adamw'.
    schedule: of the learning rate; its `num_steps` end the training.
    weight_decay: a fraction of the learning rate.
    dropout_rate: while training.
    dtype: of activations, 'float32' or 'bfloat16'.
    remat: see `Trainer`; for models that do not fit otherwise.
    seed: of parameters and dropout.
    vocabulary: SentencePiece model of the data, to be exported.
    mesh: devices along `data` and `model`, all that there are; None for one
      device. In a job of several processes, `directory` must be storage that
      all share: each writes its part of the state there, and the first one
      the rest.
    eval_every: steps between held-out losses.
    save_every: steps between states written.
    metric: 'bleu' or 'rouge' of decoded held-out examples; None for none.
    metric_every: steps between them, a multiple of `eval_every`.
    metric_examples: how many are decoded.
    max_seconds: stop when a run has taken as long; None for no limit.
    export_dtype: of the trained weights.
  """

  directory: str
  data: Data
  config: T5Config | None = None
  init_from: str | None = None
  teacher: str | None = None
  optimizer: str = "adamw"
  schedule: Schedule = Schedule()
  weight_decay: float = 0.0
  dropout_rate: float = 0.0
  dtype: str = "float32"
  remat: bool = False
  seed: int = 0
  vocabulary: str = str(SHIPPED_PATH)
  mesh: tuple[int, int] | None = None
  eval_every: int = 500
  save_every: int = 500
  metric: str | None = None
  metric_every: int = 5000
  metric_examples: int = 128
  max_seconds: float | None = None
  export_dtype: str = "bfloat16"

  def run(self, console: Console | None = None) -> pathlib.Path:
    """Trains until the schedule or the time ends, and exports.

    Args:
      console: where progress is shown.

    Returns:
      The directory of the trained weights.

    Raises:
      FileNotFoundError: there are no weights at `init_from`, or no vocabulary.
      ValueError: a setting is out of range, or settings do not match.
      FloatingPointError: a loss is not finite.
    """
    console = console or Console(quiet=not processes.is_first())
    directory = pathlib.Path(self.directory)
    directory.mkdir(parents=True, exist_ok=True)
    vocabulary = Vocabulary(self.vocabulary)
    with _compilation_cache(directory / "compiled"):
      with console.status("Preparing model and data"):
        trainer = self._trainer()
        quality = self._quality(vocabulary, trainer.config.decoder_only)
        starts = provenance.Starts(directory, self._about())
      console.print(self.data.about())
      bar = _TrainProgress(console, self.schedule.num_steps)

      def on_step(step, loss):
        starts.note(step)
        bar.show_step(step, loss)

      with bar:
        train.fit(
            trainer,
            self.data,
            self.schedule.num_steps,
            directory,
            eval_every=self.eval_every,
            save_every=self.save_every,
            max_seconds=self.max_seconds,
            quality=quality,
            quality_every=self.metric_every,
            on_step=on_step,
            on_row=bar.show_row,
        )
    return self._export(trainer, directory)

  def _about(self) -> dict[str, Any]:
    """Settings for `provenance`; files are told by their content."""
    settings = provenance.describe(self)
    files = {"vocabulary": self.vocabulary}
    del settings["directory"], settings["vocabulary"]
    for role in ("init_from", "teacher"):
      if getattr(self, role):
        files[role] = find(getattr(self, role))
    hashes = {role: provenance.weights_hash(x) for role, x in files.items()}
    return {"settings": settings, "files_sha256": hashes}

  def _trainer(self) -> train.Trainer:
    mesh = partitioning.mesh_of(self.mesh)
    config, params = self._start(mesh)
    teacher = self.teacher and load(self.teacher, mesh=mesh)
    return train.Trainer(
        config,
        optimizers.make_optimizer(
            self.optimizer, self.schedule, self.weight_decay
        ),
        self.seed,
        params,
        mesh,
        self.remat,
        teacher and train.Teacher(teacher.config, teacher.params),
    )

  def _start(self, mesh) -> tuple[T5Config, Params]:
    """Returns the configuration, and parameters if there are any yet."""
    if self.config is None and self.init_from is None:
      raise ValueError(
          "`config` or `init_from` must be given. Got None for both."
      )
    config, params = self.config, None
    if self.init_from is not None:
      found = load(self.init_from, mesh=mesh)
      config, params = config or found.config, found.params
      if config != found.config:
        params = grow.grow(found.config, params, config)
    config = dataclasses.replace(
        config, dropout_rate=self.dropout_rate, dtype=self.dtype
    )
    return config, params

  def _quality(
      self, vocabulary: Vocabulary, decoder_only: bool
  ) -> Quality | None:
    if self.metric is None:
      return None
    if decoder_only:
      raise ValueError(
          "`metric` must be None for a decoder-only model."
          f" Got {self.metric!r}."
      )
    examples = self.data.validation[: self.metric_examples]
    return Quality(vocabulary, examples, self.metric)

  def _export(self, trainer, directory: pathlib.Path) -> pathlib.Path:
    """Writes weights and all beside them; replaces those of earlier runs."""
    model, ready = directory / "model", directory / "model.new"
    processes.on_first(lambda: shutil.rmtree(ready, ignore_errors=True))
    checkpoints.save_hugging_face(
        ready,
        trainer.config,
        trainer.state.params,
        self.export_dtype,
        vocabulary=self.vocabulary,
    )

    def replace():
      for name in ("log.jsonl", provenance.STARTS_NAME):
        # Those who trained before there were provenances have none.
        if (directory / name).exists():
          shutil.copyfile(directory / name, ready / name)
      shutil.rmtree(model, ignore_errors=True)
      return ready.rename(model)

    return processes.on_first(replace)


@contextlib.contextmanager
def _compilation_cache(directory: pathlib.Path) -> Iterator[None]:
  """Keeps compiled programs; a resumed run need not compile them again."""
  old = jax.config.jax_compilation_cache_dir
  jax.config.update("jax_compilation_cache_dir", str(directory))
  compilation_cache.reset_cache()
  try:
    yield
  finally:
    jax.config.update("jax_compilation_cache_dir", old)
    compilation_cache.reset_cache()


class _TrainProgress(progress.Progress):
  """Progress bar of a job: steps, time left, losses."""

  def __init__(self, console: Console, num_steps: int):
    super().__init__(
        progress.TextColumn("Training"),
        progress.BarColumn(bar_width=24),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("elapsed"),
        progress.TimeRemainingColumn(),
        progress.TextColumn("left, {task.fields[loss]}"),
        console=console,
        speed_estimate_period=600,
    )
    self._task = self.add_task("", total=num_steps, loss="compiling")
    self._is_first = True

  def show_step(self, step: int, loss: float) -> None:
    """Moves the bar; a resumed run's speed counts from where it resumed."""
    if self._is_first:
      self.reset(self._task, completed=step)
      self._is_first = False
    self.update(self._task, completed=step, loss=f"loss {loss:.3f}")

  def show_row(self, row: dict[str, Any]) -> None:
    """Prints a row of the curve above the bar."""
    self.console.print(
        ", ".join(f"{name.replace('_', ' ')} {v:,}" for name, v in row.items())
    )

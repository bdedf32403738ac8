"""Compiles a target with its drafts for slices of TPUs, cell by cell.

`counts-*` cells hold bytes and operations of model calls, `compiled-*` cells
what the compiler tells. Nothing is run; `report.tpu_tables` predicts from the
counts.
"""

import dataclasses
import itertools
import pathlib
from typing import Any

import jax
from rich.console import Console

from spec_t5x import provenance
from spec_t5x.config import T5Config
from spec_t5x.experiments.cells import CellStore
from spec_t5x.report import tpu_tables
from spec_t5x.tpu import chips, compiling, counting

Measured = tuple[dict[str, Any], list[dict[str, Any]]]


@dataclasses.dataclass(frozen=True)
class Setting:
  """One point of the grid; its fields name the cell.

  Attributes:
    slice: see `chips.SLICES`.
    draft: role of the draft.
    task: whose lengths.
    temperature: of both models.
    gamma: tokens drafted in one iteration.
  """

  slice: str
  draft: str
  task: str
  temperature: float
  gamma: int

  @property
  def cell(self) -> str:
    """Name of the cell."""
    return (
        f"compiled-{self.slice}-{self.draft}-{self.task}"
        f"-t{self.temperature:g}-g{self.gamma}"
    )


def counts_cell(slice_name: str, task: str) -> str:
  """Name of the cell of counts."""
  return f"counts-{slice_name}-{task}"


@dataclasses.dataclass(frozen=True)
class TpuCompileJob:
  """A grid of compilations, each of one text decoded speculatively.

  The first value of each field is the usual one: settings that differ from it
  in few fields are compiled first, so a run that is stopped early tells about
  each field.

  Attributes:
    target: the large model.
    drafts: role, such as 'small', to small model.
    slices: see `chips.SLICES`.
    gammas: tokens drafted in one iteration.
    tasks: name to (positions of the inputs, most tokens decoded).
    temperatures: 0 and above 0 are different programs.
    results: directory that all results are under.
    name: names the directory of these.
  """

  target: T5Config
  drafts: dict[str, T5Config]
  slices: tuple[str, ...]
  gammas: tuple[int, ...]
  tasks: dict[str, tuple[int, int]]
  temperatures: tuple[float, ...] = (1.0,)
  results: str = "results"
  name: str = "tpu_compile"

  def __post_init__(self):
    """Checks what gin lets through."""
    for field in ("drafts", "slices", "gammas", "tasks", "temperatures"):
      if not getattr(self, field):
        raise ValueError(f"`{field}` must not be empty.")
    for setting in self.settings():
      parts = chips.find_slice(setting.slice).num_chips
      counting.shard(self.target, parts)
      self.loop(setting)

  def settings(self) -> list[Setting]:
    """The grid, in the order in which it is compiled."""
    # Of as many differences, those in the last axes come first.
    axes = {
        "temperature": self.temperatures,
        "gamma": self.gammas,
        "task": tuple(self.tasks),
        "draft": tuple(self.drafts),
        "slice": self.slices,
    }
    grid = itertools.product(*axes.values())
    unusual = lambda point: sum(
        value != axis[0]
        for value, axis in zip(point, axes.values(), strict=True)
    )
    return [
        Setting(**dict(zip(axes, point, strict=True)))
        for point in sorted(grid, key=unusual)
    ]

  def loop(self, setting: Setting) -> compiling.Loop:
    """What is compiled for a setting."""
    return compiling.Loop(
        self.target,
        self.drafts[setting.draft],
        setting.gamma,
        *self.tasks[setting.task],
        setting.temperature,
    )

  @property
  def directory(self) -> pathlib.Path:
    """Where the results are."""
    return pathlib.Path(self.results) / self.name

  def execute(self) -> None:
    """Fills in missing cells, then writes the tables.

    A run that was stopped is resumed by the same call.

    Raises:
      RuntimeError: the TPU compiler is not installed.
      ValueError: the directory holds cells of other models or lengths.
    """
    for name in self.slices:
      chips.devices(name)
    console = Console()
    store = CellStore(self.directory / "cells")
    self._note()
    cells = list(self._cells())
    missing = [cell for cell in cells if cell[0] not in store]
    console.print(
        f"{self.directory}: {len(cells)} cells, {len(missing)} missing."
    )
    for number, (name, measure) in enumerate(missing, 1):
      console.print(f"{number} of {len(missing)}: {name}", highlight=False)
      store.write(name, *measure())
      # Else every program of T5-XXL keeps half a gigabyte of memory.
      jax.clear_caches()
    for path in tpu_tables.build(self.directory):
      console.print(f"wrote {path}", highlight=False)

  def _cells(self):
    for slice_name, task in itertools.product(self.slices, self.tasks):
      yield counts_cell(slice_name, task), lambda a=(slice_name, task): (
          self._counts(*a)
      )
    for setting in self.settings():
      yield setting.cell, lambda s=setting: self._compiled(s)

  def _counts(self, slice_name: str, task: str) -> Measured:
    """Bytes and operations of each call, on one device."""
    inputs, targets = self.tasks[task]
    # As `decoding.prefill` has it, for the longest block.
    length = targets + max(self.gammas) + 2
    part = counting.shard(self.target, chips.find_slice(slice_name).num_chips)
    blocks = (1, *(gamma + 1 for gamma in sorted(self.gammas)))
    rows = []
    for model, config, of_model in (
        ("target", part, blocks),
        *((draft, config, (1, 2)) for draft, config in self.drafts.items()),
    ):
      works = [(0, counting.start_work(config, inputs))]
      works += [
          (block, counting.extend_work(config, block, length, inputs))
          for block in of_model
      ]
      rows += [
          {"model": model, "block": block, **work._asdict()}
          for block, work in works
      ]
    return {"slice": slice_name, "task": task, "targets": targets}, rows

  def _compiled(self, setting: Setting) -> Measured:
    devices = chips.devices(setting.slice)
    facts = compiling.compile_loop(self.loop(setting), devices)
    about = dataclasses.asdict(setting) | facts
    about["device_kind"] = devices[0].device_kind
    return about, []

  def _note(self) -> None:
    """Writes the provenance, or checks that it fits cells made before."""
    record = provenance.collect({}, {}, 0, self.target.dtype)
    record["versions"]["libtpu"] = chips.compiler_version()
    record["settings"] = {
        "target": dataclasses.asdict(self.target),
        "tasks": self.tasks,
        **{
            f"draft {role}": dataclasses.asdict(config)
            for role, config in self.drafts.items()
        },
    }
    provenance.note(self.directory, record)

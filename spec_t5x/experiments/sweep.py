"""The sweep: alpha, cost coefficient, and walltime, cell by cell.

Each quantity of Leviathan et al. 2023 is measured apart from the others:
alpha on texts that the target generated (section 4.2), quality on the same
texts generated with a draft, c and v(gamma) as seconds per model call, walltime
as plain against speculative decoding.
"""

import dataclasses
import functools
import itertools
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import jax

from spec_t5x import (
    benchmarks,
    model,
    partitioning,
    processes,
    provenance,
    trace,
)
from spec_t5x.decoder import Decoder
from spec_t5x.draft import AnyDraft, find_draft, load_draft
from spec_t5x.experiments import alpha, cells, quality, timing
from spec_t5x.experiments.cells import CellStore
from spec_t5x.experiments.sweep_settings import Sweep
from spec_t5x.experiments.texts import Texts
from spec_t5x.experiments.walltime import TimedExample


@dataclasses.dataclass(frozen=True)
class Cell:
  """One unit of work: a name that is also a file, and how to measure it."""

  name: str
  measure: Callable[[], tuple[dict[str, Any], list[dict[str, Any]]]]


class SweepRun:
  """A sweep on its way: loaded models, texts, and the store of cells.

  In a job of several processes all measure, and the first one keeps the cells.
  """

  def __init__(self, sweep: Sweep, directory: pathlib.Path):
    """Loads the models and notes the provenance.

    Raises:
      ValueError: the directory holds cells of other settings or weights, or
        the mesh does not fit.
    """
    self.sweep = sweep
    self.mesh = partitioning.mesh_of(sweep.mesh)
    self.store = processes.on_first(lambda: CellStore(directory / "cells"))
    benchmark = benchmarks.load(
        sweep.task,
        sweep.split,
        sweep.source_prefix,
        samples=sweep.samples,
        run_programs=sweep.run_programs,
    )
    self._note_provenance(directory, len(benchmark.pairs))
    self.target = model.load(sweep.target, sweep.dtype, mesh=self.mesh)
    self.drafts = {
        role: load_draft(name, sweep.dtype)
        for role, name in sweep.drafts.items()
    }
    self.texts = Texts(benchmark, self.target, sweep.prompt_tokens)

  def _note_provenance(self, directory: pathlib.Path, num_texts: int) -> None:
    models = {"target": self.sweep.target, **self.sweep.drafts}
    record = provenance.collect(
        {role: find_draft(name) for role, name in models.items()},
        {
            "task": self.sweep.task,
            "split": self.sweep.split,
            "source_prefix": self.sweep.source_prefix,
            "texts": num_texts,
        },
        self.sweep.seed,
        self.sweep.dtype,
    )
    processes.check_same("weights", record["weights_sha256"])
    record = {"settings": dataclasses.asdict(self.sweep), **record}
    processes.on_first(lambda: provenance.note(directory, record))

  def decoder(
      self,
      draft: AnyDraft | None,
      temperature: float,
      gamma: int = 0,
      lenience: float = 1.0,
  ) -> Decoder:
    """A decoder of the sweep's settings."""
    ids = self.target.vocabulary.num_ids if self.target.vocabulary else None
    return Decoder(
        self.target,
        draft,
        gamma=gamma,
        temperature=temperature,
        top_p=self.sweep.top_p,
        lenience=lenience,
        max_decode_steps=self.sweep.max_decode_steps,
        seed=self.sweep.seed,
        vocab_size=ids,
        mesh=self.mesh,
        draft_sharding=self.sweep.draft_sharding,
    )

  def cells(self) -> Iterator[Cell]:
    """All cells, those that others read first."""
    sweep = self.sweep
    for temperature in sweep.temperatures:
      yield self._cell(cells.outputs_name, self._outputs, temperature)
    for about in itertools.product(
        sweep.drafts, sweep.temperatures, (1.0, *sweep.leniences)
    ):
      yield self._cell(cells.alpha_name, self._alpha, *about)
      yield self._cell(cells.quality_name, self._quality, *about)
    for role in sweep.drafts:
      yield self._cell(cells.cost_name, self._cost, role)
    for about in itertools.product(sweep.drafts, sweep.temperatures):
      yield self._cell(cells.trace_name, self._trace, *about)
    for about in itertools.chain(
        itertools.product(sweep.drafts, sweep.temperatures, sweep.gammas),
        itertools.product(
            sweep.drafts,
            sweep.temperatures,
            [sweep.middle_gamma],
            sweep.leniences,
        ),
    ):
      yield self._cell(cells.walltime_name, self._walltime, *about)

  def _cell(self, name_of, measure, *about) -> Cell:
    return Cell(name_of(*about), functools.partial(measure, *about))

  def missing(self) -> list[str]:
    """Names of the cells that are not measured."""
    names = [cell.name for cell in self.cells()]
    return processes.on_first(lambda: [n for n in names if n not in self.store])

  def run(self, advance: Callable[[str], None] = lambda name: None) -> None:
    """Measures what is missing; calls `advance` before each cell."""
    missing = self.missing()
    for cell in self.cells():
      advance(cell.name)
      if cell.name in missing:
        write = functools.partial(self.store.write, cell.name, *cell.measure())
        processes.on_first(write)
        # Programs of a long sweep add up to more memory maps than Linux allows
        # a process, and XLA crashes while it compiles the next one.
        jax.clear_caches()

  def _outputs(self, temperature: float):
    """Texts that the target generates, until there are tokens enough."""
    about, rows = quality.outputs(
        self.texts, self.decoder(None, temperature), self.sweep.alpha_tokens
    )
    return {"temperature": temperature, **about}, rows

  def _read_outputs(self, temperature: float) -> list[dict[str, Any]]:
    name = cells.outputs_name(temperature)
    return processes.on_first(lambda: self.store.read(name))[1]

  def _quality(self, role: str, temperature: float, lenience: float):
    """The same texts, generated with the draft."""
    gamma = self.sweep.middle_gamma
    decoder = self.decoder(self.drafts[role], temperature, gamma, lenience)
    plain = self._read_outputs(temperature)
    about, rows = quality.again(self.texts, decoder, plain)
    about |= {
        "draft": role,
        "temperature": temperature,
        "lenience": lenience,
        "gamma": gamma,
    }
    return about, rows

  def _alpha(self, role: str, temperature: float, lenience: float):
    """Overlap of both laws at every token that the target generated."""
    outputs = self._read_outputs(temperature)
    rows = alpha.overlaps(
        self.target,
        self.drafts[role],
        [self.texts.ids[row["example"]] for row in outputs],
        [row["tokens"] for row in outputs],
        temperature,
        lenience,
        top_p=self.sweep.top_p,
        mesh=self.mesh,
    )
    about = {"draft": role, "temperature": temperature, "lenience": lenience}
    return about, rows

  def _cost(self, role: str):
    """Seconds per call of the draft, and of the target by block size."""
    plain = self.decoder(None, 0.0)
    speculative = self.decoder(self.drafts[role], 0.0, 1)
    middle = self.texts.numbers[len(self.texts.numbers) // 2]
    request = plain.prepare(self.texts.inputs([middle]))
    target, target_params = plain.models.target, plain.weights.target
    draft = speculative.models.draft.scorer
    blocks = [1, *(gamma + 1 for gamma in self.sweep.gammas)]
    values = timing.step_seconds(
        [
            (draft, speculative.weights.draft, 1),
            (draft, speculative.weights.draft, 2),
            *((target, target_params, block) for block in blocks),
        ],
        request.ids,
        request.settings.max_length + max(blocks) + 1,
        self.sweep.step_repeats,
        mesh=self.mesh,
    )
    rows = [
        {"model": name, "block": block, "seconds": taken}
        for (name, block), taken in zip(
            [("draft", 1), ("draft", 2), *(("target", b) for b in blocks)],
            values,
            strict=True,
        )
    ]
    return {"draft": role, "device": provenance.device_name()}, rows

  def _trace(self, role: str, temperature: float):
    """One text, iteration by iteration (Figure 1)."""
    gamma = self.sweep.middle_gamma
    decoder = self.decoder(self.drafts[role], temperature, gamma)
    numbers = self.texts.commonest(self.sweep.num_texts)
    number = numbers[len(numbers) // 2]
    spell = functools.partial(trace.spelt, spelling=self.target.vocabulary)
    about = {
        "draft": role,
        "temperature": temperature,
        "gamma": gamma,
        "example": number,
        "source": self.texts.source(number),
    }
    rows = [
        {"segments": list(map(spell, segments))}
        for segments in trace.trace(decoder, self.texts.ids[number], number)
    ]
    return about, rows

  def _walltime(
      self, role: str, temperature: float, gamma: int, lenience: float = 1.0
  ):
    """Plain and speculative decoding of the same texts, one by one."""
    plain = self.decoder(None, temperature)
    speculative = self.decoder(self.drafts[role], temperature, gamma, lenience)
    examples = [
        TimedExample(self.texts.inputs([number])[0], number, plain, speculative)
        for number in self.texts.commonest(self.sweep.num_texts)
    ]
    for number in range(self.sweep.passes):
      for place, example in enumerate(examples):
        example.time((number + place) % 2 == 0)
    rows = [example.row for example in examples]
    about = {
        "draft": role,
        "temperature": temperature,
        "gamma": gamma,
        "lenience": lenience,
        "device": provenance.device_name(),
    }
    return about, rows

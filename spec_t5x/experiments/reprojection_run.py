"""What projecting the encoder's output in every step costs, cell by cell.

Leviathan et al. 2023 measure speeds above their own formula (A.3). One
explanation is a baseline that projects the encoder's output anew in every
step; so everything here is measured both ways, by `reprojection`.
"""

import dataclasses
import itertools
import pathlib
from collections.abc import Callable

from spec_t5x import corpora, model, provenance
from spec_t5x.decoder import Decoder
from spec_t5x.draft import find_draft, load_draft
from spec_t5x.experiments import timing
from spec_t5x.experiments.cells import CellStore
from spec_t5x.experiments.reprojection import (
    PROJECTIONS,
    matmuls_in_loops,
    with_projection,
)
from spec_t5x.experiments.walltime import TimedExample
from spec_t5x.types import EOS_ID


@dataclasses.dataclass(frozen=True)
class Reprojection:
  """What to measure.

  Attributes:
    name: of the experiment; names the directory of its results.
    run: names this run of it, such as the machine.
    task: corpus whose sources are cut to inputs, 'ende' or 'summ'.
    target: weights directory, hub name, or 'shipped:<name>'.
    draft: the same of the draft.
    input_lengths: tokens of the inputs, multiples of 16.
    gamma: tokens drafted in one iteration.
    num_texts: inputs of each length.
    passes: timed passes over them.
    step_repeats: measurements of each model call.
    max_decode_steps: most tokens of a text.
    seed: of all random numbers.
    dtype: of parameters and activations.
    results: directory that all results are under.
  """

  name: str
  run: str
  task: str
  target: str
  draft: str
  input_lengths: tuple[int, ...] = (64, 128, 256, 512)
  gamma: int = 7
  num_texts: int = 6
  passes: int = 5
  step_repeats: int = 15
  max_decode_steps: int = 64
  seed: int = 0
  dtype: str = "float32"
  results: str = "results"

  def __post_init__(self):
    """Checks what gin lets through."""
    if not self.input_lengths:
      raise ValueError("`input_lengths` must not be empty.")
    if any(length < 16 or length % 16 for length in self.input_lengths):
      raise ValueError(
          "`input_lengths` must be multiples of 16, which inputs are padded"
          f" to. Got {self.input_lengths}."
      )
    for field in ("gamma", "num_texts", "passes", "step_repeats"):
      if getattr(self, field) < 1:
        raise ValueError(
            f"`{field}` must be at least 1. Got {getattr(self, field)}."
        )

  @property
  def directory(self) -> pathlib.Path:
    """Where the results are."""
    return pathlib.Path(self.results) / self.name / self.run

  def execute(self) -> None:
    """Measures missing cells; a killed run is resumed by the same call."""
    ReprojectionRun(self).run(lambda name: print(name, flush=True))


class ReprojectionRun:
  """A run on its way: loaded models, inputs, and the store of cells."""

  def __init__(self, settings: Reprojection):
    """Loads the models and notes the provenance.

    Raises:
      ValueError: there are cells of other settings or weights, or too few
        texts in the corpus.
    """
    self.settings = settings
    self.store = CellStore(settings.directory / "cells")
    pairs = corpora.load_pairs(settings.task, "test")
    models = {"target": settings.target, "draft": settings.draft}
    record = provenance.collect(
        {role: find_draft(name) for role, name in models.items()},
        {"task": settings.task, "split": "test", "texts": len(pairs)},
        settings.seed,
        settings.dtype,
    )
    known = dataclasses.asdict(settings)
    # Where the results lie changes none of them.
    del known["run"], known["results"]
    provenance.note(settings.directory, {"settings": known, **record})
    target = model.load(settings.target, settings.dtype)
    draft = load_draft(settings.draft, settings.dtype)
    shared = dict(
        temperature=0.0,
        max_decode_steps=settings.max_decode_steps,
        seed=settings.seed,
    )
    plain = Decoder(target, **shared)
    speculative = Decoder(target, draft, gamma=settings.gamma, **shared)
    self._decoders = {
        projection: (
            with_projection(plain, projection),
            with_projection(speculative, projection),
        )
        for projection in PROJECTIONS
    }
    encoded = plain.encode([pair.source for pair in pairs])
    self._stream = list(itertools.chain.from_iterable(encoded))

  def run(self, advance: Callable[[str], None] = lambda name: None) -> None:
    """Measures what is missing; calls `advance` before each cell."""
    cells = {"program": self._program}
    for length in self.settings.input_lengths:
      cells[f"steps-n{length}"] = lambda n=length: self._steps(n)
      cells[f"decode-n{length}"] = lambda n=length: self._decode(n)
    for name, measure in cells.items():
      advance(name)
      if name not in self.store:
        self.store.write(name, *measure())

  def _inputs(self, length: int) -> list[list[int]]:
    """Consecutive sources of the corpus, cut to one length, EOS at the end."""
    starts = range(0, self.settings.num_texts * (length - 1), length - 1)
    if starts.stop > len(self._stream):
      raise ValueError(
          f"`num_texts` inputs of {length} tokens must fit into the"
          f" {len(self._stream)} of the corpus. Got {self.settings.num_texts}."
      )
    return [
        [*self._stream[start : start + length - 1], EOS_ID] for start in starts
    ]

  def _program(self):
    """Matrix products in the loop, as compiled: what the compiler moved."""
    ids = self._inputs(self.settings.input_lengths[0])[:1]
    rows = []
    for projection, (plain, _) in self._decoders.items():
      lowered = timing.lower_decode(plain, plain.prepare(ids))
      program = lowered.compile().as_text()
      rows.append(
          {
              "projection": projection,
              "matmuls_in_loops": matmuls_in_loops(program),
          }
      )
    layers = self._decoders["once"][0].models.target.config.num_decoder_layers
    about = {"device": provenance.device_name(), "projections": 2 * layers}
    return about, rows

  def _steps(self, length: int):
    """Seconds per call of both models, projecting once and in every step."""
    calls = []
    for projection in ("once", "every_step"):
      models = self._decoders[projection][1].models
      weights = self._decoders[projection][1].weights
      target = (models.target, weights.target)
      draft = (models.draft.scorer, weights.draft)
      calls += [
          (projection, "target", 1, target),
          (projection, "target", self.settings.gamma + 1, target),
          (projection, "draft", 1, draft),
      ]
    values = timing.step_seconds(
        [(*scorer, block) for _, _, block, scorer in calls],
        self._decoders["once"][0].prepare(self._inputs(length)[:1]).ids,
        self.settings.max_decode_steps + self.settings.gamma + 2,
        self.settings.step_repeats,
    )
    rows = [
        {
            "projection": projection,
            "model": role,
            "block": block,
            "seconds": taken,
        }
        for (projection, role, block, _), taken in zip(
            calls, values, strict=True
        )
    ]
    return {"length": length, "device": provenance.device_name()}, rows

  def _decode(self, length: int):
    """Plain and speculative decoding of the same inputs, each way."""
    timed = [
        {
            projection: TimedExample(ids, number, *decoders)
            for projection, decoders in self._decoders.items()
        }
        for number, ids in enumerate(self._inputs(length))
    ]
    for number in range(self.settings.passes):
      for place, examples in enumerate(timed):
        for example in examples.values():
          example.time((number + place) % 2 == 0)
    rows = [
        {projection: example.row for projection, example in examples.items()}
        for examples in timed
    ]
    about = {
        "length": length,
        "gamma": self.settings.gamma,
        "device": provenance.device_name(),
    }
    return about, rows

"""Projecting once or in every step, compiled for a TPU and predicted there.

The hardware of Leviathan et al. 2023 is a TPU v4: whether a baseline that
projects the encoder's output in every step explains their speeds depends on
what the compiler of that chip leaves in the loop, and on what it would cost.
"""

import dataclasses
import functools
import pathlib

import jax

from spec_t5x import decoding, partitioning, provenance
from spec_t5x.config import T5Config
from spec_t5x.decoding_types import Models, Settings, Weights
from spec_t5x.experiments.cells import CellStore
from spec_t5x.experiments.reprojection import (
    PROJECTIONS,
    make_scorer,
    matmuls_in_loops,
)
from spec_t5x.law import Sampling
from spec_t5x.tpu import chips, compiling, counting


@dataclasses.dataclass(frozen=True)
class TpuReprojection:
  """What to compile and count; nothing is run.

  Attributes:
    name: of the experiment; names the directory of its results.
    run: names this run of it.
    target: the model, in T5X's layout.
    slice: see `chips.SLICES`; of one chip.
    input_lengths: positions of the inputs.
    targets: most tokens decoded.
    results: directory that all results are under.
  """

  name: str
  run: str
  target: T5Config
  slice: str = "v4-1"
  input_lengths: tuple[int, ...] = (64, 128, 256, 512)
  targets: int = 128
  results: str = "results"

  @property
  def directory(self) -> pathlib.Path:
    """Where the results are."""
    return pathlib.Path(self.results) / self.name / self.run

  def execute(self) -> None:
    """Fills in missing cells; a stopped run is resumed by the same call.

    Raises:
      RuntimeError: the TPU compiler is not installed.
      ValueError: there are cells of other settings.
    """
    chips.devices(self.slice)
    store = CellStore(self.directory / "cells")
    record = provenance.collect({}, {}, 0, self.target.dtype)
    record["versions"]["libtpu"] = chips.compiler_version()
    known = dataclasses.asdict(self)
    del known["run"], known["results"]
    provenance.note(self.directory, {"settings": known, **record})
    cells = {"program": self._program}
    for length in self.input_lengths:
      cells[f"work-n{length}"] = functools.partial(self._work, length)
    for name, measure in cells.items():
      print(name, flush=True)
      if name not in store:
        store.write(name, *measure())

  def _program(self):
    """Matrix products in the loop of plain decoding, as compiled."""
    rows = [
        {
            "projection": projection,
            "matmuls_in_loops": matmuls_in_loops(self._compile(projection)),
        }
        for projection in PROJECTIONS
    ]
    device = chips.devices(self.slice)[0].device_kind
    about = {
        "device": f"{device}, not run",
        "projections": 2 * self.target.num_decoder_layers,
    }
    return about, rows

  def _compile(self, projection: str) -> str:
    """The optimised program."""
    mesh = partitioning.make_mesh(1, 1, chips.devices(self.slice))
    scorer = make_scorer(self.target, projection)
    weights = compiling.placed_params(
        self.target, mesh, partitioning.REPLICATED_RULES
    )
    settings = Settings(
        max_length=self.targets,
        sampling=Sampling(greedy=True, num_ids=self.target.vocab_size),
    )
    decode = jax.jit(decoding.decode, static_argnums=(0, 1))
    text = compiling.text_shapes(self.input_lengths[-1], mesh)
    with partitioning.on_mesh(mesh):
      lowered = decode.lower(Models(scorer), settings, Weights(weights), *text)
      return lowered.compile().as_text()

  def _work(self, length: int):
    """Bytes and operations of a decode step, projecting once and in each."""
    rows = []
    for projection in ("once", "every_step"):
      work = counting.extend_work(
          self.target,
          1,
          self.targets + 2,
          length,
          functools.partial(make_scorer, projection=projection),
      )
      rows.append({"projection": projection, **work._asdict()})
    return {"length": length, "slice": self.slice}, rows

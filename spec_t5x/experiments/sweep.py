"""The sweep: alpha, cost coefficient, and walltime, cell by cell.

Each quantity of Leviathan et al. 2023 is measured apart from the others:
alpha on texts that the target generated (section 4.2), c and v(gamma) as
seconds per model call, walltime as plain against speculative decoding.
"""

import dataclasses
import functools
import itertools
import pathlib
import statistics
from collections.abc import Callable, Iterator
from typing import Any

from spec_t5x import corpora, inputs, model, trace
from spec_t5x.decoder import Decoder
from spec_t5x.draft import AnyDraft, find_draft, load_draft
from spec_t5x.experiments import alpha, provenance, timing
from spec_t5x.experiments.cells import CellStore
from spec_t5x.experiments.sweep_settings import Sweep
from spec_t5x.experiments.walltime import TimedExample, quality


@dataclasses.dataclass(frozen=True)
class Cell:
  """One unit of work: a name that is also a file, and how to measure it."""

  name: str
  measure: Callable[[], tuple[dict[str, Any], list[dict[str, Any]]]]


def walltime_name(
    draft: str, temperature: float, gamma: int, lenience: float = 1.0
) -> str:
  """Names the walltime cell of a draft's role; lenient ones begin otherwise."""
  if lenience == 1:
    return f"walltime-{draft}-t{temperature:g}-g{gamma}"
  return f"lenient-{draft}-t{temperature:g}-g{gamma}-l{lenience:g}"


def trace_name(draft: str, temperature: float) -> str:
  """Names the cell of a traced text."""
  return f"trace-{draft}-t{temperature:g}"


class SweepRun:
  """A sweep on its way: loaded models, texts, and the store of cells."""

  def __init__(self, sweep: Sweep, directory: pathlib.Path):
    """Loads the models and notes the provenance.

    Raises:
      ValueError: the directory holds cells of other settings or weights.
    """
    self.sweep = sweep
    self.store = CellStore(directory / "cells")
    self.pairs = corpora.load_pairs(
        sweep.task, sweep.split, sweep.source_prefix
    )
    self._note_provenance(directory)
    self.target = model.load(sweep.target, sweep.dtype)
    self.drafts = {
        role: load_draft(name, sweep.dtype)
        for role, name in sweep.drafts.items()
    }

  def _note_provenance(self, directory: pathlib.Path) -> None:
    models = {"target": self.sweep.target, **self.sweep.drafts}
    record = provenance.collect(
        {role: find_draft(name) for role, name in models.items()},
        {
            "task": self.sweep.task,
            "split": self.sweep.split,
            "source_prefix": self.sweep.source_prefix,
            "texts": len(self.pairs),
        },
        self.sweep.seed,
        self.sweep.dtype,
    )
    provenance.note(
        directory, {"settings": dataclasses.asdict(self.sweep), **record}
    )

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
        lenience=lenience,
        max_decode_steps=self.sweep.max_decode_steps,
        seed=self.sweep.seed,
        vocab_size=ids,
    )

  def cells(self) -> Iterator[Cell]:
    """All cells, those that others read first."""
    sweep = self.sweep
    for temperature in sweep.temperatures:
      yield Cell(
          f"outputs-t{temperature:g}", lambda t=temperature: self._outputs(t)
      )
    for about in itertools.product(
        sweep.drafts, sweep.temperatures, (1.0, *sweep.leniences)
    ):
      yield Cell(alpha.cell_name(*about), lambda a=about: self._alpha(*a))
    for role in sweep.drafts:
      yield Cell(f"cost-{role}", lambda r=role: self._cost(r))
    for about in itertools.product(sweep.drafts, sweep.temperatures):
      yield Cell(trace_name(*about), lambda a=about: self._trace(*a))
    for about in itertools.product(
        sweep.drafts, sweep.temperatures, sweep.gammas
    ):
      yield Cell(walltime_name(*about), lambda a=about: self._walltime(*a))
    for about in itertools.product(
        sweep.drafts, sweep.temperatures, [sweep.middle_gamma], sweep.leniences
    ):
      yield Cell(walltime_name(*about), lambda a=about: self._walltime(*a))

  def run(self, advance: Callable[[str], None] = lambda name: None) -> None:
    """Measures what is missing; calls `advance` before each cell."""
    for cell in self.cells():
      advance(cell.name)
      if cell.name not in self.store:
        self.store.write(cell.name, *cell.measure())

  def _outputs(self, temperature: float):
    """Texts that the target generates, until there are tokens enough."""
    decoder = self.decoder(None, temperature)
    rows, total = [], 0
    for first in range(0, len(self.pairs), 16):
      if total >= self.sweep.alpha_tokens:
        break
      batch = self.pairs[first : first + 16]
      result = decoder(
          [pair.source for pair in batch],
          example_ids=range(first, first + len(batch)),
      )
      for number, (pair, tokens, counts) in enumerate(
          zip(batch, result.tokens, result.per_decode, strict=True)
      ):
        total += counts.emitted
        rows.append(
            {
                "example": first + number,
                "tokens": tokens[: counts.emitted].tolist(),
                "prediction": result.texts[number],
                "reference": pair.target,
            }
        )
    about = {"temperature": temperature, "tokens": total}
    about["quality"] = quality(self.sweep.task, rows)
    return about, rows

  def _alpha(self, role: str, temperature: float, lenience: float):
    """Overlap of both laws at every token that the target generated."""
    _, outputs = self.store.read(f"outputs-t{temperature:g}")
    sources = self.decoder(None, temperature).encode(
        [self.pairs[row["example"]].source for row in outputs]
    )
    rows = alpha.overlaps(
        self.target,
        self.drafts[role],
        sources,
        [row["tokens"] for row in outputs],
        temperature,
        lenience,
    )
    about = {"draft": role, "temperature": temperature, "lenience": lenience}
    return about, rows

  def _cost(self, role: str):
    """Seconds per call of the draft, and of the target by block size."""
    plain = self.decoder(None, 0.0)
    speculative = self.decoder(self.drafts[role], 0.0, 1)
    source = self.pairs[len(self.pairs) // 2].source
    target, target_params = plain.models.target, plain.weights.target
    draft = speculative.models.draft.scorer
    blocks = [1, *(gamma + 1 for gamma in self.sweep.gammas)]
    values = timing.step_seconds(
        [
            (draft, speculative.weights.draft, 1),
            (draft, speculative.weights.draft, 2),
            *((target, target_params, block) for block in blocks),
        ],
        plain.prepare([source]).ids,
        self.sweep.max_decode_steps + max(blocks) + 1,
        self.sweep.step_repeats,
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

  def _timed_texts(self) -> list[int]:
    """Texts of the commonest padded length, spread over the split.

    One length compiles one program.
    """
    decoder = self.decoder(None, 0.0)
    lengths = [
        inputs.padded_length(len(ids))
        for ids in decoder.encode([pair.source for pair in self.pairs])
    ]
    common = statistics.mode(lengths)
    numbers = [i for i, length in enumerate(lengths) if length == common]
    step = max(1, len(numbers) // self.sweep.num_texts)
    return numbers[::step][: self.sweep.num_texts]

  def _trace(self, role: str, temperature: float):
    """One text, iteration by iteration (Figure 1)."""
    gamma = self.sweep.middle_gamma
    decoder = self.decoder(self.drafts[role], temperature, gamma)
    texts = self._timed_texts()
    number = texts[len(texts) // 2]
    source = self.pairs[number].source
    spell = functools.partial(trace.spelt, spelling=self.target.vocabulary)
    about = {
        "draft": role,
        "temperature": temperature,
        "gamma": gamma,
        "example": number,
        "source": source,
    }
    rows = [
        {"segments": list(map(spell, segments))}
        for segments in trace.trace(decoder, source, number)
    ]
    return about, rows

  def _walltime(
      self, role: str, temperature: float, gamma: int, lenience: float = 1.0
  ):
    """Plain and speculative decoding of the same texts, one by one."""
    plain = self.decoder(None, temperature)
    speculative = self.decoder(self.drafts[role], temperature, gamma, lenience)
    examples = [
        TimedExample(
            self.pairs[number].source,
            self.pairs[number].target,
            number,
            plain,
            speculative,
        )
        for number in self._timed_texts()
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
    for which in ("plain", "speculative"):
      predictions = [
          {
              "prediction": row[which]["prediction"],
              "reference": row["reference"],
          }
          for row in rows
      ]
      about[f"{which}_quality"] = quality(self.sweep.task, predictions)
    return about, rows

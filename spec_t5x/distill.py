"""Distillation by texts: a draft learns from what its target writes.

Kim and Rush 2016, "Sequence-Level Knowledge Distillation". A draft is accepted
where it agrees with the target, so the target's own outputs are the best data
for it. They come from a decode job, which a killed run resumes, and may be
decoded with an earlier draft: the law of the outputs is the same.
"""

import dataclasses
import json
import os
import pathlib
from collections.abc import Sequence

from rich.console import Console

from spec_t5x import atomic, decode_files, processes
from spec_t5x.batching import Example
from spec_t5x.decode_job import DecodeJob
from spec_t5x.train_data import Examples
from spec_t5x.types import EOS_ID, PAD_ID


def distill(
    data: Examples,
    target: str,
    directory: str | os.PathLike[str],
    *,
    draft: str | None = None,
    gamma: int = 5,
    temperature: float = 0.0,
    num_decodes: int = 1,
    max_decode_steps: int = 96,
    batch_size: int = 32,
    seed: int = 0,
    console: Console | None = None,
) -> Examples:
  """Replaces the training targets by what a model writes.

  Args:
    data: pairs to take the training sources from.
    target: directory or hub name of the model that writes.
    directory: where `sources.jsonl` and `outputs.jsonl` are kept. Further calls
      with the same arguments only read them.
    draft: makes the decoding faster, and changes nothing else.
    gamma: tokens drafted in one iteration.
    temperature: 0 for the target's most probable tokens, 1 for its law.
    num_decodes: texts per source.
    max_decode_steps: most tokens of a text.
    batch_size: sources decoded together.
    seed: of the decoding.
    console: where progress is shown.

  Returns:
    The sources with the outputs that `read_outputs` takes. The held-out pairs
    are those of `data`, so that losses compare with those of other trainings.

  Raises:
    FileNotFoundError: there is no such model.
    ValueError: `directory` holds outputs of other arguments.
  """
  directory = pathlib.Path(directory)
  directory.mkdir(parents=True, exist_ok=True)
  sources, outputs = directory / "sources.jsonl", directory / "outputs.jsonl"
  processes.on_first(
      lambda: write_sources(sources, [source for source, _ in data.train])
  )
  DecodeJob(
      target=target,
      draft=draft,
      inputs=str(sources),
      outputs=str(outputs),
      gamma=gamma,
      temperature=temperature,
      num_decodes=num_decodes,
      max_decode_steps=max_decode_steps,
      batch_size=batch_size,
      seed=seed,
  ).run(console)
  return dataclasses.replace(data, train=read_outputs(outputs))


def write_sources(
    path: str | os.PathLike[str], sources: Sequence[Sequence[int]]
) -> None:
  """Writes token ids as the inputs of a decode job, EOS appended."""
  lines = ({"tokens": [*ids, EOS_ID]} for ids in sources)
  atomic.write(path, map(decode_files.json_line, lines))


def read_outputs(path: str | os.PathLike[str]) -> list[Example]:
  """Reads the outputs of a decode job as (source, output) pairs without EOS.

  Outputs that were cut off, and so lack EOS, are left out: they would teach a
  draft to end where its target does not. So are those with PAD inside, which a
  batch could not tell from padding. Several decodes of an input become several
  pairs.
  """
  pairs = []
  with open(path, encoding="utf-8") as file:
    for record in map(json.loads, file):
      decodes = record["tokens"]
      if isinstance(decodes[0], int):
        decodes = [decodes]
      pairs += [
          (record["input"][:-1], tokens[:-1])
          for tokens in decodes
          if tokens[-1] == EOS_ID and PAD_ID not in tokens
      ]
  return pairs

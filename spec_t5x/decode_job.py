"""The decode job: a file of texts in, a file of JSON lines out.

Batches are a function of the inputs and of `batch_size` alone, and each
input's random numbers of its line and the seed alone. So a run that was
killed and resumed writes the very bytes that an undisturbed one does.

In a job of several processes the first one alone writes; inputs and models
must be where all can read them.
"""

import contextlib
import dataclasses
import json
import pathlib
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from spec_t5x import (
    atomic,
    decode_files,
    inputs,
    partitioning,
    processes,
    trace,
)
from spec_t5x.decode_batches import BatchResult, decode_batch, make_batches
from spec_t5x.decode_summary import DecodeProgress, Summary
from spec_t5x.decoder import Decoder
from spec_t5x.draft import find_draft, load_draft
from spec_t5x.model import find, load
from spec_t5x.provenance import weights_hash

# They change nothing in the outputs; files are told by their content.
_NOT_SETTINGS = ("target", "draft", "inputs", "outputs", "trace", "trace_file")


@dataclasses.dataclass(frozen=True)
class DecodeJob:
  """Decodes a file. See `Decoder` for the settings not described here.

  Attributes:
    target: directory or hub name of the target.
    draft: the same of the draft, 'ngram:FILE' or 'lookup' (see `draft`); None
      for plain decoding.
    inputs: one text a line, or JSON lines `{"tokens": [...]}` with EOS.
    outputs: JSON lines to write, one per input, in the order of the inputs:
      `input`, `prediction` (with a vocabulary), `tokens`, `log_prob` (nats),
      `accept_counts`, `iterations`, `emitted`. With `num_decodes` > 1 all but
      `input` are lists, sorted by rising `log_prob`.
    rescale_log_probs: T5X has True, by which all greedy decodes score 0.
    batch_size: most inputs decoded together.
    dtype: of parameters and activations, 'float32' or 'bfloat16'.
    mesh: devices over which the rows of a batch and the target are split,
      (data, model), all that there are; None for one device.
    draft_sharding: 'replicated' or 'sharded'.
    vocabulary: SentencePiece file; by default the target's `spiece.model`.
    trace: line of the inputs, counted from 1, or lines, whose decoding is
      shown iteration by iteration; None or 0 for none.
    trace_file: where the traces are exported to, .svg or .html.
  """

  target: str
  draft: str | None
  inputs: str
  outputs: str
  gamma: int = 5
  temperature: float = 0.0
  top_k: int = 0
  top_p: float = 0.0
  lenience: float = 1.0
  block_verification: bool = False
  num_decodes: int = 1
  max_decode_steps: int = 128
  seed: int = 0
  prefix: str = ""
  rescale_log_probs: bool = False
  batch_size: int = 16
  dtype: str = "float32"
  mesh: tuple[int, int] | None = None
  draft_sharding: str = "replicated"
  vocabulary: str | None = None
  trace: int | Sequence[int] | None = None
  trace_file: str | None = None

  def run(self, console: Console | None = None) -> Summary:
    """Decodes what no earlier run has decoded, and writes the outputs.

    Finished batches are kept in `<outputs>.partial` until all are there.
    Settings and summary go to `<outputs>.summary.json`.

    Args:
      console: where progress, summary and traces are shown.

    Returns:
      Counts and times.

    Raises:
      FileNotFoundError: there are no inputs, or no such model.
      ValueError: an argument or a line of the inputs is malformed, or there
        are outputs of another run.
      FloatingPointError: a model's logits are not finite.
    """
    console = console or Console(quiet=not processes.is_first())
    lines = decode_files.read_inputs(self.inputs)
    self._check(len(lines.entries))
    processes.on_first(self._check_outputs)
    settings = self._settings(lines)
    processes.check_same("settings", settings)
    summary = processes.on_first(lambda: self._finished(settings))
    decoder = None
    if summary:
      console.print("All inputs were decoded by an earlier run.")
    else:
      file = decode_files.PartialFile(self._beside("partial"), settings)
      with contextlib.closing(file):
        decoder = self._load(lines, console)
        results = self._decode(decoder, lines, file, console)
        summary = processes.on_first(lambda: self._write(results, settings))
        file.remove()
    console.print(summary.table())
    if self._traced:
      self._show_traces(decoder or self._load(lines, console), lines, console)
    return summary

  def _check(self, num_lines: int) -> None:
    if not isinstance(self.batch_size, int) or self.batch_size < 1:
      raise ValueError(
          "`batch_size` must be an integer, at least 1."
          f" Got {self.batch_size!r}."
      )
    if self.rescale_log_probs and self.lenience < 1 and self.temperature == 0:
      raise ValueError(
          "`rescale_log_probs` must be False if `lenience` is below 1 at"
          " temperature 0: JSON has no -inf. Got True."
      )
    for line in self._traced:
      if not 1 <= line <= num_lines:
        raise ValueError(
            f"`trace` must name lines of `inputs`, 1 to {num_lines}."
            f" Got {line}."
        )
    if self.trace_file:
      trace.check_file(self.trace_file)

  def _check_outputs(self) -> None:
    outputs = pathlib.Path(self.outputs)
    if not outputs.parent.is_dir():
      raise ValueError(
          f"`outputs` must be in a directory that exists. Got {outputs}."
      )
    if outputs.exists() and not self._beside("summary.json").exists():
      raise ValueError(
          f"`outputs` must not exist yet. Got {outputs}, which no decode job"
          f" wrote: there is no {self._beside('summary.json')} beside it."
      )

  def _beside(self, suffix: str) -> pathlib.Path:
    return pathlib.Path(f"{self.outputs}.{suffix}")

  @property
  def _traced(self) -> Sequence[int]:
    if not self.trace:
      return ()
    return (self.trace,) if isinstance(self.trace, int) else self.trace

  def _settings(self, lines: decode_files.Inputs) -> dict[str, Any]:
    """Returns all that the outputs depend on."""
    settings = dataclasses.asdict(self)
    for name in _NOT_SETTINGS:
      del settings[name]
    found = find_draft(self.draft) if self.draft else ()
    return settings | {
        "inputs_sha256": lines.sha256,
        "target_sha256": weights_hash(find(self.target)),
        "draft": self.draft if self.draft and not found else None,
        "draft_sha256": weights_hash(*found) if found else None,
    }

  def _load(self, lines: decode_files.Inputs, console: Console) -> Decoder:
    """Loads the models; checks that they can read the inputs."""
    mesh = partitioning.mesh_of(self.mesh)
    with console.status("Loading the models"):
      target = load(
          self.target, self.dtype, vocabulary=self.vocabulary, mesh=mesh
      )
      draft = load_draft(self.draft, self.dtype) if self.draft else None
      decoder = Decoder(
          target,
          draft,
          gamma=self.gamma,
          temperature=self.temperature,
          top_k=self.top_k,
          top_p=self.top_p,
          lenience=self.lenience,
          block_verification=self.block_verification,
          num_decodes=self.num_decodes,
          max_decode_steps=self.max_decode_steps,
          seed=self.seed,
          prefix=self.prefix,
          rescale_log_probs=self.rescale_log_probs,
          mesh=mesh,
          draft_sharding=self.draft_sharding,
      )
    num_ids = inputs.num_ids(target, draft, None)
    decode_files.check_inputs(lines, num_ids, target.vocabulary is not None)
    return decoder

  def _finished(self, settings: dict[str, Any]) -> Summary | None:
    """Returns the summary if all is done; other settings are refused."""
    if not pathlib.Path(self.outputs).exists():
      return None
    found = json.loads(self._beside("summary.json").read_text("utf-8"))
    decode_files.check_settings(self.outputs, found["settings"], settings)
    # A run may have been killed just before it would have done so.
    self._beside("partial").unlink(missing_ok=True)
    return Summary.from_dict(found["summary"])

  def _decode(
      self,
      decoder: Decoder,
      lines: decode_files.Inputs,
      file: decode_files.PartialFile,
      console: Console,
  ) -> list[BatchResult]:
    """Decodes the batches that are not in the file."""
    ids = lines.entries
    if lines.are_texts:
      ids = decoder.encode(ids)
    is_prompt = decoder.models.target.config.decoder_only
    results = [BatchResult.from_dict(batch) for batch in file.batches]
    done = {result.batch for result in results}
    shapes = set()
    with DecodeProgress(console, len(ids)) as bar:
      bar.add(*results)
      for batch in make_batches(ids, self.batch_size):
        if batch.index in done:
          continue
        is_first = batch.ids.shape not in shapes
        shapes.add(batch.ids.shape)
        bar.announce(*batch.ids.shape, is_first)
        result = decode_batch(
            decoder, batch, lines.entries, is_prompt, is_first
        )
        file.append(dataclasses.asdict(result))
        results.append(result)
        bar.add(result)
    return results

  def _write(
      self, results: Sequence[BatchResult], settings: dict[str, Any]
  ) -> Summary:
    """Writes the summary and the outputs, in the order of the inputs."""
    summary = Summary.pool(self.outputs, self.block_verification, results)
    about = {"settings": settings, "summary": summary.to_dict()}
    text = json.dumps(about, indent=2) + "\n"
    atomic.write_text(self._beside("summary.json"), text)
    records = {}
    for result in results:
      records |= zip(result.lines, result.records, strict=True)
    atomic.write(
        self.outputs,
        (decode_files.json_line(records[line]) for line in range(len(records))),
    )
    return summary

  def _show_traces(
      self, decoder: Decoder, lines: decode_files.Inputs, console: Console
  ) -> None:
    shown = []
    for line in self._traced:
      iterations = trace.trace(decoder, lines.entries[line - 1], line - 1)
      title = f"\nLine {line}: {lines.entries[line - 1]}"
      shown.append(trace.render(iterations, decoder.vocabulary, title))
      console.print(shown[-1])
    if shown and self.trace_file and processes.is_first():
      trace.export(shown, self.trace_file)

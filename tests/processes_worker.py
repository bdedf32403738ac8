"""One of two processes, each with four virtual CPU devices.

Run by `processes_test.py`. It writes what it saw to a JSON file and judges
nothing.

  python processes_worker.py <directory> <port> <index> <case> ...

where the cases are those of `mesh_worker.py`. Process 0 alone decodes the ones
of one device, which must be the last: process 1 would not wait for long.
"""

import dataclasses
import io
import json
import os
import pathlib
import sys

import jax
import mesh_worker
import toy_decoder
from rich.console import Console

from spec_t5x import checkpoints, decode_job, partitioning, processes
from spec_t5x.decode_job import DecodeJob
from spec_t5x.model import load


def error_of(function, *args):
  try:
    return function(*args)
  except (ValueError, FileNotFoundError) as error:
    return f"{type(error).__name__}: {error}"


def missing():
  raise FileNotFoundError(f"There is nothing for process {os.getpid()}.")


def messages(index):
  """What the processes tell each other."""
  return {
      "first": processes.on_first(os.getpid),
      "error": error_of(processes.on_first, missing),
      "same": error_of(processes.check_same, "settings", {"seed": 0}),
      "other": error_of(processes.check_same, "settings", {"seed": index}),
      "no mesh": error_of(partitioning.mesh_of, None),
  }


def weights(target, own, shared):
  """Loads and writes a model; whether what was written is what was loaded."""
  save = checkpoints.save_hugging_face
  model = shared / "model"
  processes.on_first(lambda: save(model, target.config, target.params))
  loaded = load(model, mesh=partitioning.make_mesh(2, 4))
  table = loaded.params["token_embedder"]["embedding"]
  save(own / "copy", loaded.config, loaded.params)
  file = "model.safetensors"
  same = (
      lambda: (own / "copy" / file).read_bytes() == (model / file).read_bytes()
  )
  return {
      "part": mesh_worker.part_shape(table),
      "here": len(table.addressable_shards),
      "same": processes.on_first(same),
  }


def job(own, shared):
  """Decodes a file, is stopped after two batches, and goes on."""
  processes.on_first(lambda: toy_decoder.save_model(shared / "toy"))
  texts = shared / "in.txt"
  lines = "".join("x" * (7 * n % 40) + "\n" for n in range(11))
  processes.on_first(lambda: texts.write_text(lines))
  decode_job.Decoder = toy_decoder.CopyingDecoder
  settings = DecodeJob(
      str(shared / "toy"),
      None,
      str(texts),
      str(own / "out.jsonl"),
      batch_size=3,
      mesh=(8, 1),
  )
  decode_batch, decoded = decode_job.decode_batch, []

  def stopping(decoder, batch, *args):
    decoded.append(batch.index)
    if len(decoded) == 3:
      raise KeyboardInterrupt
    return decode_batch(decoder, batch, *args)

  decode_job.decode_batch = stopping
  run = lambda settings: settings.run(Console(file=io.StringIO()))
  try:
    run(settings)
  except KeyboardInterrupt:
    pass
  summary = run(settings)
  return {
      "decoded": decoded,
      "inputs": summary.num_inputs,
      "again": run(settings) == summary,
      "other": error_of(run, dataclasses.replace(settings, seed=1)),
  }


def main(directory, port, index, *cases):
  shared, index = pathlib.Path(directory), int(index)
  processes.join(f"127.0.0.1:{port}", 2, index)
  own = shared / f"process_{index}"
  own.mkdir()
  target = mesh_worker.make_model("target", mesh_worker.TARGET, 0)
  draft = mesh_worker.make_model("draft", mesh_worker.DRAFT, 1)
  seen = {
      "devices": [jax.local_device_count(), jax.device_count()],
      "messages": messages(index),
      "weights": weights(target, own, shared),
      "job": job(own, shared),
      "decoded": {
          case: mesh_worker.decode(target, draft, case)
          for case in cases
          if index == 0 or ":1:" not in case
      },
  }
  seen["files"] = sorted(path.name for path in own.iterdir())
  (shared / f"{index}.json").write_text(json.dumps(seen))


if __name__ == "__main__":
  try:
    main(*sys.argv[1:])
  except Exception:
    processes.leave_failed()
    raise

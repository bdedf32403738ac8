"""Trains on eight virtual CPU devices; run by `train_mesh_test.py`.

It writes what it saw to a JSON file and judges nothing.

  python train_mesh_worker.py <directory> step|job [<port> <index>]

With a port it is one of two processes, each with four of the devices.
"""

import dataclasses
import io
import json
import pathlib
import sys

import jax
import numpy as np
import toy_training
from rich.console import Console
from toy_training import make_data

from spec_t5x import checkpoints, optimizers, partitioning, processes, train
from spec_t5x.model import load
from spec_t5x.optimizers import Schedule
from spec_t5x.train_job import TrainJob

CONFIG = dataclasses.replace(toy_training.CONFIG, dropout_rate=0.0)


def make_trainer(mesh, optimizer):
  rule = optimizers.make_optimizer(optimizer, Schedule(0.03, 0, 99, 99))
  return train.Trainer(CONFIG, rule, mesh=mesh)


def params_of(trainer):
  return processes.fetch(trainer.state.params)


def largest(tree):
  return float(max(jax.tree.leaves(tree)))


def difference(mesh, optimizer):
  """Largest difference of a parameter to one device, and the largest change."""
  params = []
  for place in (None, mesh):
    trainer = make_trainer(place, optimizer)
    start = params_of(trainer)
    for batch, _ in zip(make_data().train_batches(0), range(3), strict=False):
      # Rows that the mesh does not divide.
      trainer.step({name: x[:6] for name, x in batch.items()})
    params.append(params_of(trainer))
  far = lambda a, b: np.abs(a - b).max()
  change = largest(jax.tree.map(far, start, params[0]))
  return [largest(jax.tree.map(far, *params)), change]


def resumed(mesh, directory):
  """Whether a stopped run and a straight one have the same parameters."""
  fits = ((directory / "straight", (4,)), (directory / "stopped", (2, 4)))
  ends = []
  for path, stops in fits:
    for stop in stops:
      trainer = make_trainer(mesh, "adamw")
      train.fit(trainer, make_data(), stop, path, eval_every=2, save_every=2)
    ends.append(trainer.state)
  equal = lambda a, b: bool((processes.fetch(a) == processes.fetch(b)).all())
  part = lambda x: x.addressable_shards[0].data.shape
  table = lambda params: part(params["token_embedder"]["embedding"])
  moments = [s for s in ends[1].opt_state if hasattr(s, "mu")]
  return {
      "equal": all(jax.tree.leaves(jax.tree.map(equal, *ends))),
      "files": sorted(path.name for path in (directory / "stopped").iterdir()),
      "params": table(ends[1].params),
      "moments": table(moments[0].mu),
  }


def job(directory):
  """A fine-tuning as of a large T5: what it wrote."""
  start = directory / "start"
  params = train.init_params(CONFIG, 0)
  processes.on_first(
      lambda: checkpoints.save_hugging_face(start, CONFIG, params, "bfloat16")
  )
  path = TrainJob(
      directory=str(directory / "job"),
      data=make_data(),
      init_from=str(start),
      optimizer="adafactor",
      schedule=Schedule(0.03, 0, 2, 2),
      dropout_rate=0.1,
      dtype="bfloat16",
      remat=True,
      mesh=(4, 2),
      eval_every=1,
      save_every=1,
      metric="bleu",
      metric_examples=3,
  ).run(Console(file=io.StringIO()))
  before, after = load(start), load(path)
  moved = jax.tree.map(
      lambda a, b: bool((a != b).any()), before.params, after.params
  )
  rows = (path / "log.jsonl").read_text().splitlines()
  return {
      "config": (
          after.config == dataclasses.replace(before.config, dropout_rate=0.1)
      ),
      "moved": all(jax.tree.leaves(moved)),
      "columns": sorted(json.loads(rows[-1])),
      "losses": [json.loads(row)["held_out_loss"] for row in rows],
  }


def main(directory, what, port=None, index=0):
  directory = pathlib.Path(directory)
  if port is not None:
    processes.join(f"127.0.0.1:{port}", 2, int(index))
  if what == "job":
    seen = job(directory)
  else:
    mesh = partitioning.make_mesh(4, 2)
    seen = {
        "adamw": difference(mesh, "adamw"),
        "adafactor": difference(mesh, "adafactor"),
        "resumed": resumed(mesh, directory),
    }
  (directory / f"seen_{index}.json").write_text(json.dumps(seen))


if __name__ == "__main__":
  try:
    main(*sys.argv[1:])
  except Exception:
    processes.leave_failed()
    raise

"""A toy training; as a program it stops at a step, to be killed there.

python toy_training.py <directory> <step>
"""

import copy
import functools
import pathlib
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from spec_t5x import optimizers, train
from spec_t5x.config import T5Config
from spec_t5x.train_data import Examples

CONFIG = T5Config(24, 8, 2, 4, 16, 1, 1, ("relu",), True, dropout_rate=0.1)


def make_data():
  """Sources, and the same read backwards; two batches an epoch."""
  rng = np.random.default_rng(0)
  sources = [rng.integers(2, 24, 5).tolist() for _ in range(20)]
  pairs = [(source, source[::-1]) for source in sources]
  return Examples(
      pairs[:16], pairs[16:], tokens_per_batch=96, buckets=((6, 6),)
  )


def make_trainer(
    *,
    seed=0,
    remat=False,
    peak=0.03,
    optimizer="adamw",
    config=CONFIG,
    mesh=None,
):
  """A fresh trainer; those of the same settings share compiled steps."""
  trainer = copy.copy(_trainer(seed, remat, peak, optimizer, config, mesh))
  trainer.state = jax.tree.map(jnp.copy, trainer.state)
  return trainer


@functools.cache
def _trainer(seed, remat, peak, optimizer, config, mesh):
  schedule = optimizers.Schedule(peak, 0, 1000, 1000)
  optimizer = optimizers.make_optimizer(optimizer, schedule)
  return train.Trainer(config, optimizer, seed, mesh=mesh, remat=remat)


def main(directory, last_step):
  directory = pathlib.Path(directory)

  def wait(step, loss):
    if step == int(last_step):
      (directory / "waiting").touch()
      time.sleep(600)

  train.fit(
      make_trainer(),
      make_data(),
      6,
      directory,
      eval_every=1,
      save_every=3,
      on_step=wait,
  )


if __name__ == "__main__":
  main(*sys.argv[1:])

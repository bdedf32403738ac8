r"""Measures alpha, c, v(gamma) and walltime, and writes the tables.

  python scripts/sweep.py --gin_file=configs/experiments/ende_quick.gin

A sweep that was stopped is resumed by the same command.
"""

import gin

from spec_t5x import gin_flags
from spec_t5x.experiments.sweep_job import SweepJob


def main(_: list[str]) -> None:
  """Runs the job that gin describes."""
  job = gin.get_configurable(SweepJob)()
  job.execute()
  gin_flags.save(job.directory)


if __name__ == "__main__":
  gin_flags.run(main)

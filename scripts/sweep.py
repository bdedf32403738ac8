r"""Measures alpha, c, v(gamma) and walltime, and writes the tables.

  python scripts/sweep.py --gin_file=configs/experiments/ende_quick.gin

A sweep that was stopped is resumed by the same command.
"""

from spec_t5x import gin_flags
from spec_t5x.experiments.sweep_job import SweepJob

if __name__ == "__main__":
  gin_flags.run_job(SweepJob)

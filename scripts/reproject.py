r"""Measures what projecting the encoder's output in every step costs.

  python scripts/reproject.py --gin_file=configs/experiments/reprojection.gin

A run that was stopped is resumed by the same command.
"""

from spec_t5x import gin_flags
from spec_t5x.experiments.reprojection_run import Reprojection

if __name__ == "__main__":
  gin_flags.run_job(Reprojection)

r"""Measures what projecting the encoder's output in every step costs.

  python scripts/reproject.py --gin_file=configs/experiments/reprojection.gin

A run that was stopped is resumed by the same command.
"""

import gin

from spec_t5x import gin_flags
from spec_t5x.experiments.reprojection_run import Reprojection


def main(_: list[str]) -> None:
  """Runs the job that gin describes."""
  job = gin.get_configurable(Reprojection)()
  job.execute()
  gin_flags.save(job.directory)


if __name__ == "__main__":
  gin_flags.run(main)

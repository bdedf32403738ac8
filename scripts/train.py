r"""Trains a target or a draft, or fine-tunes one.

  python scripts/train.py --gin_file=configs/experiments/train_ende_small.gin \
    --gin.DIRECTORY=\"runs/ende_small\"

The gin file describes all settings. A run that was stopped is resumed by the
same command. `DIRECTORY/model` has the weights when it ends.
"""

from spec_t5x import gin_flags
from spec_t5x.train_job import TrainJob


def train(job: TrainJob) -> None:
  """Trains, and names the directory of the weights."""
  print(job.run())


if __name__ == "__main__":
  gin_flags.run_job(TrainJob, train)

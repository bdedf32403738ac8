r"""Compiles projecting in every step for a TPU, and counts what it would cost.

  JAX_PLATFORMS=cpu python scripts/reproject_tpu.py \
    --gin_file=configs/experiments/reprojection_tpu.gin

A run that was stopped is resumed by the same command. Nothing is run.
"""

from spec_t5x import gin_flags
from spec_t5x.tpu.reprojection import TpuReprojection

if __name__ == "__main__":
  gin_flags.run_job(TpuReprojection)

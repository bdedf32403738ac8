r"""Compiles the loop for TPUs without a TPU, and predicts its speed there.

  JAX_PLATFORMS=cpu python scripts/compile_tpu.py \
    --gin_file=configs/experiments/tpu_compile_quick.gin

Needs the package `libtpu`. A run that was stopped is resumed by the same
command.
"""

from spec_t5x import gin_flags
from spec_t5x.tpu.job import TpuCompileJob

if __name__ == "__main__":
  gin_flags.run_job(TpuCompileJob)

r"""T5X's own `infer.py` in a job of several processes.

  python scripts/infer_t5x.py --multiprocess \
    --gin_file=configs/t5x/pairs/t5_1_1_xxl_small.gin ...

Takes the flags of `t5x/infer.py`, and those of `spec_t5x/process_flags.py`,
which T5X has for training alone. T5X has to be on `PYTHONPATH`.
"""

import runpy

from absl import app

from spec_t5x import process_flags, processes

if __name__ == "__main__":
  # T5X parses the flags, and then asks for devices.
  app.call_after_init(process_flags.join)
  try:
    runpy.run_module("t5x.infer", run_name="__main__", alter_sys=True)
  except Exception:
    processes.leave_failed()
    raise

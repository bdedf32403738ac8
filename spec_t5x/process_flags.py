"""Flags that make a program one process of a job; see `processes`.

  python scripts/decode.py ... --coordinator_address=host0:1234 \\
    --process_count=2 --process_index=0

Names are T5X's. The defaults are environment variables, which a launcher may
set instead.
"""

import os

from absl import flags

from spec_t5x import processes

_MULTIPROCESS = flags.DEFINE_bool(
    "multiprocess",
    False,
    "Join the processes that JAX finds by itself, as on Cloud TPU.",
)
_SETTINGS = (
    flags.DEFINE_string(
        "coordinator_address",
        os.environ.get("JAX_COORDINATOR_ADDRESS"),
        "HOST:PORT at which process 0 is reached, or $JAX_COORDINATOR_ADDRESS.",
    ),
    flags.DEFINE_integer(
        "process_count",
        os.environ.get("JAX_PROCESS_COUNT"),
        "Number of processes, or $JAX_PROCESS_COUNT.",
    ),
    flags.DEFINE_integer(
        "process_index",
        os.environ.get("JAX_PROCESS_INDEX"),
        "Which of them this is, from 0, or $JAX_PROCESS_INDEX.",
    ),
)


def join() -> None:
  """Joins the job that flags or environment describe, if they do.

  Raises:
    ValueError: some settings are given and others are not, one is out of
      range, or JAX finds no job by itself.
  """
  values = {holder.name: holder.value for holder in _SETTINGS}
  given = [name for name, value in values.items() if value is not None]
  missing = [name for name in values if name not in given]
  if not missing:
    processes.join(*values.values())
  elif given:
    raise ValueError(
        f"`--{missing[0]}` (or $JAX_{missing[0].upper()}) must be given with"
        f" {' and '.join(f'`--{name}`' for name in given)}. Got None."
    )
  elif _MULTIPROCESS.value:
    processes.join_cluster()

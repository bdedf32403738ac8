"""One job in several processes, one on each host of a slice or cluster.

All processes run one program on the same inputs and in step: a computation on
a mesh over their devices starts when the last process asks for it, and each
process gets the whole result. Files of a job are the first process' own. So it
decides whatever depends on them, such as what an earlier run has finished, and
the others are told (`on_first`).
"""

import json
import os
import pickle
import sys
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils

T = TypeVar("T")


def is_lone() -> bool:
  """Whether the job has no other process; asks for no device to find out."""
  return not jax.distributed.is_initialized() or jax.process_count() == 1


def is_first() -> bool:
  """Whether this process writes the files of the job."""
  return is_lone() or jax.process_index() == 0


def on_first(function: Callable[[], T]) -> T:
  """Calls a function in the first process; all get what it returns or raises.

  All processes must get here. Those that a failure of the first one left alone
  would wait for it in vain, so they fail with it.

  Args:
    function: neither computes on the mesh nor calls `on_first`.

  Returns:
    Its result, pickled on the way to the other processes.
  """
  if is_lone():
    return function()
  outcome = _attempt(function) if is_first() else None
  content = np.frombuffer(pickle.dumps(outcome), np.uint8)
  size = multihost_utils.broadcast_one_to_all(np.int32(content.size))
  content = np.resize(content, int(size))
  content = multihost_utils.broadcast_one_to_all(content)
  result, error = pickle.loads(content)
  if error is not None:
    raise error
  return result


class _Outcome(NamedTuple):
  result: Any
  error: Exception | None


def _attempt(function: Callable[[], Any]) -> _Outcome:
  try:
    return _Outcome(function(), None)
  except Exception as error:  # Whatever it is, it is raised again.
    return _Outcome(None, error)


def check_same(name: str, value: Any) -> None:
  """Checks that a value is the same in all processes.

  Args:
    name: of the value, for errors.
    value: what JSON can hold.

  Raises:
    ValueError: it is not; in all processes.
  """
  if is_lone():
    return
  text = json.dumps(value, sort_keys=True)
  first = on_first(lambda: text)
  agree = multihost_utils.process_allgather(np.bool_(text == first))
  if not agree.all():
    raise ValueError(
        f"`{name}` must be the same in all processes. Got others than the"
        f" first one's in processes {np.flatnonzero(~agree).tolist()}."
    )


def fetch(tree: Any) -> Any:
  """Copies arrays to the host, whole even if their parts are elsewhere.

  All processes must get here if the devices are of several.
  """
  return jax.tree.map(_fetch_one, tree)


def _fetch_one(array: jax.Array | np.ndarray) -> np.ndarray:
  is_here = not isinstance(array, jax.Array) or array.is_fully_addressable
  if is_here or array.is_fully_replicated:
    return np.asarray(array)
  return multihost_utils.process_allgather(array, tiled=True)


def join(address: str, count: int, index: int) -> None:
  """Joins the job; to be called before JAX is asked for anything.

  Args:
    address: host and port at which the first process can be reached.
    count: number of processes.
    index: of this one, from 0.

  Raises:
    ValueError: an argument is out of range.
  """
  if not 0 <= index < count:
    raise ValueError(
        f"`process_index` must be in [0, {count}), below `process_count`."
        f" Got {index}."
    )
  host, _, port = address.rpartition(":")
  if not host or not port.isdecimal():
    raise ValueError(
        f"`coordinator_address` must be HOST:PORT. Got {address!r}."
    )
  # Under SLURM, JAX would otherwise take one device per process.
  jax.distributed.initialize(
      address, count, index, cluster_detection_method="deactivate"
  )


def join_cluster() -> None:
  """Joins the job that Cloud TPU, SLURM or Open MPI tells JAX of.

  Raises:
    ValueError: none does.
  """
  try:
    jax.distributed.initialize()
  except ValueError as error:
    raise ValueError(
        "`--multiprocess` must be used where JAX finds the processes by itself:"
        f" on Cloud TPU, or under SLURM or Open MPI. It says: {error}"
    ) from error


def leave_failed() -> None:
  """Ends this process after an error, if the job has several.

  The ordinary way out waits for the others, and they for this one; JAX ends
  them when they hear no more of it. A lone process is left alone.
  """
  if not is_lone():
    traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)

"""All that a resumed run needs, apart from the data, and its file."""

import pathlib
from typing import Any, NamedTuple

import flax.serialization
import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Int

from spec_t5x import atomic
from spec_t5x.types import Params


class TrainState(NamedTuple):
  """Parameters and optimizer after a number of steps.

  Attributes:
    step: optimizer steps taken.
    params: T5X parameter tree, float32.
    opt_state: state of the optax transformation.
  """

  step: Int[Array, ""]
  params: Params
  opt_state: Any


class StateStore:
  """The newest state of a run, replaced as a whole.

  On one device it is the file `state.msgpack`, on a mesh the Orbax directory
  `state`, to which each device writes its own part.
  """

  def __init__(self, directory: pathlib.Path, mesh: Mesh | None = None):
    """Opens what is there; on a mesh this imports Orbax, which takes seconds.

    Args:
      directory: of the run; exists.
      mesh: what the states lie on.
    """
    self._file = directory / "state.msgpack"
    self._manager = None
    if mesh is not None:
      from orbax import checkpoint as ocp

      self._orbax = ocp.args
      self._manager = ocp.CheckpointManager(
          directory.resolve() / "state",
          options=ocp.CheckpointManagerOptions(max_to_keep=1),
      )

  def save(self, state: TrainState) -> None:
    """Writes a state; a kill at any moment leaves the old one or the new."""
    if self._manager:
      self._manager.save(
          int(state.step), args=self._orbax.StandardSave(state), force=True
      )
      self._manager.wait_until_finished()
      return
    content = flax.serialization.to_bytes(jax.device_get(state))
    atomic.write(self._file, [content])

  def restore(self, like: TrainState) -> TrainState | None:
    """Reads the state.

    Args:
      like: a state of the same configuration and optimizer, placed as the
        result is to be.

    Returns:
      The state, or None if there is none.

    Raises:
      ValueError: the state is of another configuration or optimizer.
    """
    if self._manager:
      step = self._manager.latest_step()
      if step is None:
        return None
      return self._manager.restore(step, args=self._orbax.StandardRestore(like))
    if not self._file.exists():
      return None
    try:
      state = flax.serialization.from_bytes(like, self._file.read_bytes())
    except (KeyError, ValueError) as error:
      raise ValueError(self._mismatch(error)) from error
    for new, old in zip(*map(jax.tree.leaves, (state, like)), strict=True):
      if new.shape != old.shape:
        raise ValueError(self._mismatch(f"{new.shape} is not {old.shape}"))
    return jax.tree.map(jnp.asarray, state)

  def _mismatch(self, reason: object) -> str:
    return (
        f"{self._file} is not of this configuration and optimizer: {reason}."
        " Name another directory to start anew."
    )

"""A T5 on a mesh of devices: T5X's logical axes and their standard rules.

Layers name the axes of what they compute, and nothing else; `AXIS_RULES` alone
says over which mesh axis each of them is split. A mesh has two axes: rows of a
batch go over `data`, and heads, MLP and vocabulary over `model`, so that each
device holds 1/model of the weights and of the caches.

A size that its mesh axis does not divide is an error, never padded or quietly
replicated: the latter would hold an XXL eight times instead of once. A draft,
which is small, can be replicated as a whole (`REPLICATED_RULES`).
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import traverse_util
from flax.linen import partitioning as nn_partitioning
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from spec_t5x import network
from spec_t5x.types import Params

AxisRules = tuple[tuple[str, str | None], ...]

MESH_AXES = ("data", "model")

# T5X's `standard_logical_axis_rules` for one-dimensional partitioning of
# parameters and activations.
AXIS_RULES: AxisRules = (
    ("batch", "data"),
    ("vocab", "model"),
    ("mlp", "model"),
    ("heads", "model"),
    ("joined_kv", "model"),
    ("embed", None),
    ("kv", None),
    ("length", None),
    ("layers", None),
    ("relpos_buckets", None),
)

# Rows are split as before, but every device holds the whole model.
REPLICATED_RULES: AxisRules = tuple(
    (name, axis if axis == "data" else None) for name, axis in AXIS_RULES
)


def make_mesh(
    data: int, model: int, devices: Sequence[jax.Device] | None = None
) -> Mesh:
  """Arranges devices in a grid, neighbours along `model`.

  Args:
    data: parts that the rows of a batch are split into.
    model: parts that the model is split into.
    devices: what to arrange; by default all devices.

  Returns:
    A mesh with the axes `data` and `model`.

  Raises:
    ValueError: the grid does not take exactly the devices there are.
  """
  devices = jax.devices() if devices is None else list(devices)
  if min(data, model) < 1 or data * model != len(devices):
    raise ValueError(
        "`data` times `model` must be the number of devices,"
        f" {len(devices)}. Got {data} times {model}."
    )
  # The sharding is the compiler's to propagate, from the constraints.
  return jax.make_mesh(
      (data, model), MESH_AXES, (AxisType.Auto,) * 2, devices=devices
  )


def mesh_of(shape: tuple[int, int] | None) -> Mesh | None:
  """Returns the mesh of all devices that a job was told to use.

  Args:
    shape: parts along `data` and along `model`; None for one device.

  Raises:
    ValueError: the grid does not take exactly the devices there are, or there
      is none and the job has several processes.
  """
  if shape is not None:
    return make_mesh(*shape)
  if jax.process_count() > 1:
    raise ValueError(
        "`mesh` must be given in a job of several processes: (data, model),"
        f" over all {jax.device_count()} devices. Got None."
    )
  return None


def check_mesh(mesh: Mesh) -> None:
  """Raises ValueError unless a mesh is as `make_mesh` makes them."""
  is_auto = set(mesh.axis_types) == {AxisType.Auto}
  if mesh.axis_names != MESH_AXES or not is_auto:
    raise ValueError(
        f"`mesh` must have the axes {MESH_AXES} of type Auto, as from"
        f" `make_mesh`. Got {mesh.axis_names} of types {mesh.axis_types}."
    )


@functools.cache
def _param_axes(
    config: network.T5Config,
) -> dict[str, tuple[tuple[str, ...], tuple[int, ...]]]:
  """Logical axes and shape of each parameter by its path."""
  tokens = jnp.ones((1, 1), "int32")
  inputs = (tokens,) * (2 if config.decoder_only else 3)
  variables = jax.eval_shape(
      network.build(config).init, jax.random.key(0), *inputs
  )
  names = nn_partitioning.get_axis_names(variables["params_axes"])
  names = traverse_util.flatten_dict(names, sep="/")
  params = traverse_util.flatten_dict(variables["params"], sep="/")
  return {
      path: (tuple(names[path]), param.shape) for path, param in params.items()
  }


def param_shardings(
    config: network.T5Config, mesh: Mesh, rules: AxisRules = AXIS_RULES
) -> Params:
  """Returns where each parameter lies on a mesh.

  Args:
    config: the model, in T5X's layout. The packed one is for a single CPU: its
      stacked kernels would be cut through query, key and value.
    mesh: with axes `data` and `model`.
    rules: mesh axis of each logical axis.

  Returns:
    A tree like the parameters, of `NamedSharding`.

  Raises:
    ValueError: the model is packed, or an axis of it is not divisible by the
      devices that it is split over.
  """
  check_mesh(mesh)
  if config.packed:
    raise ValueError("`config.packed` must be False on a mesh. Got True.")
  to_mesh = dict(rules)
  shardings = {}
  for path, (names, shape) in _param_axes(config).items():
    spec = [to_mesh[name] for name in names]
    for name, size, axis in zip(names, shape, spec, strict=True):
      if axis is not None and size % mesh.shape[axis]:
        raise ValueError(
            f"The axis `{name}` of {path} must be divisible by the"
            f" {mesh.shape[axis]} devices along `{axis}` of the mesh."
            f" Got {size}."
        )
    shardings[path] = NamedSharding(mesh, PartitionSpec(*spec))
  return traverse_util.unflatten_dict(shardings, sep="/")


def place(
    config: network.T5Config,
    params: Params,
    mesh: Mesh,
    rules: AxisRules = AXIS_RULES,
) -> Params:
  """Moves parameters onto a mesh; those that lie right stay where they are.

  Raises:
    ValueError: see `param_shardings`.
  """
  return put(params, param_shardings(config, mesh, rules))


def put_onto(
    config: network.T5Config, mesh: Mesh, rules: AxisRules = AXIS_RULES
) -> Callable[[str, np.ndarray], jax.Array]:
  """Returns a function that places one tensor, for `checkpoints.load_params`.

  Each device gets its own part of a tensor as soon as it is read, so a model
  larger than host memory loads.

  Raises:
    ValueError: see `param_shardings`.
  """
  shardings = param_shardings(config, mesh, rules)
  by_path = traverse_util.flatten_dict(shardings, sep="/")
  return lambda path, value: put(value, by_path[path])


def put(tree: Any, shardings: Any | None) -> Any:
  """Moves arrays that all processes hold alike, each process its own part.

  `jax.device_put` would compare the values of all processes, which sends every
  weight through the network, and it takes no typed keys.

  Args:
    tree: arrays of the host or of one device. Those that lie on a mesh already
      are moved by JAX.
    shardings: one, or a tree of them that `tree` begins like; None for JAX's
      default device.
  """
  if shardings is None or jax.process_count() == 1:
    return jax.device_put(tree, shardings)
  return jax.tree.map(_put_part, tree, jax.tree.broadcast(shardings, tree))


def _put_part(value, sharding: NamedSharding) -> jax.Array:
  if isinstance(value, jax.Array) and not value.is_fully_addressable:
    return jax.device_put(value, sharding)
  if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
    words = _put_part(jax.random.key_data(value), sharding)
    return jax.random.wrap_key_data(words, impl=jax.random.key_impl(value))
  value = np.asarray(value)
  return jax.make_array_from_callback(
      value.shape, sharding, lambda part: value[part]
  )


def batch_sharding(mesh: Mesh) -> NamedSharding:
  """Returns the sharding of arrays whose first axis is rows."""
  return NamedSharding(mesh, PartitionSpec("data"))


def replicated(mesh: Mesh) -> NamedSharding:
  """Returns the sharding of arrays that every device holds whole."""
  return NamedSharding(mesh, PartitionSpec())


@contextlib.contextmanager
def on_mesh(mesh: Mesh | None, rules: AxisRules = AXIS_RULES) -> Iterator[None]:
  """Lets the sharding constraints of the layers take effect.

  To be held around the call of a jitted function. The mesh is part of what JAX
  compiles for, so nothing traced without it is used again.

  Args:
    mesh: with axes `data` and `model`; None changes nothing.
    rules: mesh axis of each logical axis.
  """
  if mesh is None:
    yield
    return
  with jax.set_mesh(mesh), nn_partitioning.axis_rules(rules):
    yield

"""TPU chips and slices of them: published figures, described topologies."""

import importlib.metadata
import os
from typing import NamedTuple

import jax
from jax.experimental import topologies


class Chip(NamedTuple):
  """What the maker publishes of a chip.

  Attributes:
    name: as users say it.
    memory: high-bandwidth memory, bytes.
    bandwidth: of that memory, bytes per second.
    peak: bfloat16 operations per second.
    source: page that the figures are from.
  """

  name: str
  memory: float
  bandwidth: float
  peak: float
  source: str


_DOCS = "https://cloud.google.com/tpu/docs/"

# The pages print GiB for v4 and GB for the others; the latter are read as
# decimal, which is the smaller.
CHIPS = {
    chip.name: chip
    for chip in (
        Chip("v4", 32 * 2**30, 1200e9, 275e12, _DOCS + "v4"),
        Chip("v5e", 16e9, 819e9, 197e12, _DOCS + "v6e"),
        Chip("v5p", 95e9, 2765e9, 459e12, _DOCS + "v5p"),
        Chip("v6e", 32e9, 1640e9, 918e12, _DOCS + "v6e"),
    )
}


class Slice(NamedTuple):
  """Chips that work together, each one device.

  Attributes:
    chip: its name.
    num_chips: how many.
    topology: as the compiler calls it.
    host_bounds: chips of one host along each axis.
    cores: 'megacore' where a chip's two cores are one device, as on Cloud TPU,
      else 'default'.
  """

  chip: str
  num_chips: int
  topology: str
  host_bounds: tuple[int, int, int]
  cores: str


SLICES = {
    "v4-1": Slice("v4", 1, "v4:1x1x1", (1, 1, 1), "megacore"),
    "v4-4": Slice("v4", 4, "v4:2x2x1", (2, 2, 1), "megacore"),
    "v5e-1": Slice("v5e", 1, "v5e:1x1", (1, 1, 1), "default"),
    "v5e-4": Slice("v5e", 4, "v5e:2x2", (2, 2, 1), "default"),
    "v5e-8": Slice("v5e", 8, "v5e:2x4", (2, 4, 1), "default"),
    "v5p-1": Slice("v5p", 1, "v5p:1x1x1", (1, 1, 1), "megacore"),
    "v5p-4": Slice("v5p", 4, "v5p:2x2x1", (2, 2, 1), "megacore"),
    "v6e-1": Slice("v6e", 1, "v6e:1x1", (1, 1, 1), "default"),
    "v6e-4": Slice("v6e", 4, "v6e:2x2", (2, 2, 1), "default"),
    "v6e-8": Slice("v6e", 8, "v6e:2x4", (2, 4, 1), "default"),
}


def find_slice(name: str) -> Slice:
  """Returns a slice by its name, chip and number of chips.

  Raises:
    ValueError: there is none of this name.
  """
  if name not in SLICES:
    raise ValueError(f"`slice` must be one of {tuple(SLICES)}. Got {name!r}.")
  return SLICES[name]


def compiler_version() -> str | None:
  """Version of the TPU compiler, None if it is not installed."""
  try:
    return importlib.metadata.version("libtpu")
  except importlib.metadata.PackageNotFoundError:
    return None


def devices(name: str) -> list[jax.Device]:
  """Returns the devices of a slice as the compiler describes them.

  They can be compiled for, not run on. No TPU is needed, but its compiler is:
  the package `libtpu` in the version of jax's extra `tpu`.

  Raises:
    ValueError: there is no slice of this name.
    RuntimeError: the compiler is not installed.
  """
  described = find_slice(name)
  # The compiler looks for a machine that it could be running on, and locks it.
  os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
  os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")
  if compiler_version() is None:
    raise RuntimeError(
        "The TPU compiler is not installed. Its package is `libtpu`, of jax's"
        " extra `tpu`; see README, 'For TPU'."
    )
  topology = topologies.get_topology_desc(
      platform="tpu",
      topology_name=described.topology,
      chips_per_host_bounds=list(described.host_bounds),
      chip_config_name=described.cores,
  )
  return list(topology.devices)

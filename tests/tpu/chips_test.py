"""Tests of the table of chips and slices."""

import re

import pytest

from spec_t5x.tpu import chips


@pytest.mark.parametrize("chip", chips.CHIPS.values(), ids=chips.CHIPS)
def test_every_chip_has_a_source(chip):
  assert re.fullmatch(r"https://cloud\.google\.com/tpu/docs/v\w+", chip.source)


@pytest.mark.parametrize(
    ("name", "memory", "bandwidth", "peak"),
    [
        # As the pages print them.
        ("v4", 32, 1200, 275),
        ("v5e", 16, 819, 197),
        ("v5p", 95, 2765, 459),
        ("v6e", 32, 1640, 918),
    ],
)
def test_units_are_bytes_and_operations(name, memory, bandwidth, peak):
  chip = chips.CHIPS[name]
  assert chip.memory in (memory * 10**9, memory * 2**30)
  assert chip.bandwidth == bandwidth * 10**9
  assert chip.peak == peak * 10**12


@pytest.mark.parametrize(("name", "described"), chips.SLICES.items())
def test_a_topology_has_as_many_chips_as_its_slice(name, described):
  kind, _, grid = described.topology.partition(":")
  sizes = [int(size) for size in grid.split("x")]
  product = 1
  for size in sizes:
    product *= size
  assert name == f"{described.chip}-{product}"
  assert described.num_chips == product
  assert kind == described.chip
  assert described.chip in chips.CHIPS


def test_an_unknown_slice():
  with pytest.raises(ValueError, match="`slice` must be one of .*'v4-1'.*'v9'"):
    chips.find_slice("v9")


def test_a_missing_compiler(monkeypatch):
  monkeypatch.setattr(chips, "compiler_version", lambda: None)
  with pytest.raises(RuntimeError, match="`libtpu`"):
    chips.devices("v4-1")

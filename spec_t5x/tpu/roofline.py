"""Seconds of a model call by the roofline: the slower of memory and arithmetic.

A lower bound: it knows nothing of the fixed cost of an operation, of latency
between chips, or of what the compiler adds. A call that decodes one text is
bound by memory, so a step costs its bytes.
"""

from spec_t5x.tpu.chips import Chip
from spec_t5x.tpu.counting import Work


def seconds(work: Work, chip: Chip) -> float:
  """Returns max(bytes / bandwidth, operations / peak)."""
  return max(work.bytes / chip.bandwidth, work.flops / chip.peak)

"""What the compiler made of the loop, read from its optimized program.

The text is that of XLA: named computations, one instruction a line. Of the
decoding loop it tells what crosses chips in one iteration, and which arrays
are laid out anew there, weights above all.
"""

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Iterator

_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{$")
# The type of a tuple holds spaces and comments, but no parenthesis that is
# not part of a layout.
_INSTRUCTION = re.compile(
    r"^\s+(?:ROOT )?%?(?P<name>[\w.\-]+) ="
    r" (?P<shape>\((?:[^()]|\([^()]*\))*\)|\S+)"
    r" (?P<opcode>[\w\-]+)\((?P<rest>.*)"
)
_ARRAY = re.compile(
    r"\b[a-z]+(\d*)\w*\[([\d,]*)\](?:\{([\d,]*)(?::T\(([\d,]+))?)?"
)

COLLECTIVES = (
    "all-gather",
    "all-reduce",
    "all-to-all",
    "collective-permute",
    "reduce-scatter",
)
# A layout of its own for what stands elsewhere in another.
_RELAYOUTS = ("copy", "transpose")


@dataclasses.dataclass(frozen=True)
class Instruction:
  """A line of a computation.

  Attributes:
    name: unique in the program.
    opcode: what it does.
    shape: type of its result, with layout.
    rest: operands and attributes.
  """

  name: str
  opcode: str
  shape: str
  rest: str

  def called(self, attribute: str) -> list[str]:
    """Computations that it names under an attribute, such as 'body'."""
    return re.findall(rf"\b{attribute}=%?([\w.\-]+)", self.rest)


@dataclasses.dataclass(frozen=True)
class Tally:
  """What one run of a computation does, loops inside it unrolled.

  Attributes:
    collectives: how many of each kind.
    collective_bytes: their results.
    relayouts: copies and transposes that stand by themselves.
    relayout_bytes: their results.
  """

  collectives: dict[str, int] = dataclasses.field(default_factory=dict)
  collective_bytes: int = 0
  relayouts: int = 0
  relayout_bytes: int = 0

  def plus(self, other: "Tally", times: int = 1) -> "Tally":
    """Adds a multiple of another tally."""
    collectives = Counter(self.collectives)
    for kind, number in other.collectives.items():
      collectives[kind] += times * number
    return Tally(
        dict(collectives),
        self.collective_bytes + times * other.collective_bytes,
        self.relayouts + times * other.relayouts,
        self.relayout_bytes + times * other.relayout_bytes,
    )


class Program:
  """A compiled program.

  Attributes:
    computations: the instructions of each, by name.
    entry: name of the one that is run.
  """

  def __init__(self, text: str):
    """Parses what `compiled.as_text()` gives.

    Raises:
      ValueError: there is no entry computation.
    """
    self.computations: dict[str, list[Instruction]] = {}
    self.entry = ""
    current = None
    for line in text.splitlines():
      head = _COMPUTATION.match(line)
      if head:
        current = self.computations.setdefault(head[2], [])
        self.entry = head[2] if head[1] else self.entry
      elif line.startswith("}"):
        current = None
      elif current is not None and (match := _INSTRUCTION.match(line)):
        current.append(Instruction(**match.groupdict()))
    if not self.entry:
      raise ValueError("`text` must hold an ENTRY computation. Got none.")

  def decoding_loop(self) -> Instruction:
    """The loop that the entry computation runs.

    Raises:
      ValueError: it runs none, or several.
    """
    loops = self._loops(self.entry)
    if len(loops) != 1:
      raise ValueError(f"The program must run one loop. It runs {len(loops)}.")
    return loops[0]

  def per_iteration(self) -> Tally:
    """What one iteration of the decoding loop does."""
    return self._tally(self.decoding_loop().called("body")[0])

  def outside(self) -> Tally:
    """What is done once, before and after the decoding loop."""
    return self._tally(self.entry, skip=self.decoding_loop().name)

  def trip_count(self, loop: Instruction) -> int:
    """How often a loop runs that counts from 0 to a constant, as scans do.

    Raises:
      ValueError: it ends otherwise.
    """
    [name] = loop.called("condition")
    *_, root = condition = self.computations[name]
    limits = [i for i in condition if i.opcode == "constant"]
    counts = root.opcode == "compare" and "direction=LT" in root.rest
    if not counts or len(limits) != 1:
      raise ValueError(f"The loop {loop.name} must count to a constant.")
    return int(limits[0].rest.partition(")")[0])

  def _loops(self, computation: str) -> list[Instruction]:
    return [i for i in self.computations[computation] if i.opcode == "while"]

  def _tally(self, computation: str, skip: str = "") -> Tally:
    total = Tally()
    for instruction in self.computations[computation]:
      if instruction.opcode == "while":
        if instruction.name != skip:
          [body] = instruction.called("body")
          times = self.trip_count(instruction)
          total = total.plus(self._tally(body), times)
        continue
      total = total.plus(_own(instruction))
      # A fused or asynchronous collective stands in a computation of its own.
      for called in instruction.called("calls"):
        inner = self._tally(called)
        total = total.plus(
            dataclasses.replace(inner, relayouts=0, relayout_bytes=0)
        )
    return total


def _own(instruction: Instruction) -> Tally:
  """What an instruction does by itself."""
  kind = instruction.opcode.removesuffix("-start")
  if kind in COLLECTIVES:
    # The start of an asynchronous one also holds its operand.
    arrays = list(sizes(instruction.shape))
    half = instruction.opcode.endswith("-start") and len(arrays) > 1
    moved = arrays[-1][0] if half else sum(size for size, _ in arrays)
    return Tally({kind: 1}, moved)
  if instruction.opcode in _RELAYOUTS:
    moved = sum(size for size, _ in sizes(instruction.shape))
    return Tally(relayouts=1, relayout_bytes=moved)
  return Tally()


def sizes(shape: str) -> Iterator[tuple[int, int]]:
  """Yields bytes of each array of a type, and bytes as it lies in memory.

  Tiles of a TPU cover the two minor axes; what does not fill one is padded.
  """
  for bits, dims, order, tile in _ARRAY.findall(shape):
    item = max(1, int(bits) // 8) if bits else 1
    dims = [int(d) for d in dims.split(",") if d]
    padded = list(dims)
    if order and tile:
      minor = [int(axis) for axis in order.split(",")]
      tiles = [int(t) for t in tile.split(",")][::-1]
      for axis, size in zip(minor, tiles, strict=False):
        padded[axis] = math.ceil(dims[axis] / size) * size
    yield item * math.prod(dims), item * math.prod(padded)

"""Cross-attention keys and values made once, or in every decode step.

Stock T5X writes a decode step that projects the encoder's output to keys and
values again. `Decoder` projects it once per text. Here is the other way as a
kind of scorer, for measuring what it costs; the loop does not know of it.
"""

import copy
import dataclasses
import itertools
from typing import NamedTuple

import jax
from jaxtyping import Array, Float, Int

from spec_t5x import network
from spec_t5x.config import T5Config
from spec_t5x.decoder import Decoder
from spec_t5x.decoding_types import Models
from spec_t5x.tpu import hlo
from spec_t5x.types import Cache, Params

# once         keys and values are projected before the loop
# as_written   the step projects them, as stock T5X's does; they depend on
#              nothing that changes, so the compiler may move that work out of
#              the loop
# every_step   the same, and the compiler is kept from moving it
PROJECTIONS = ("once", "as_written", "every_step")

_MATMULS = ("dot", "convolution")
_CALLS = ("body", "calls", "condition", "to_apply")


class Encoded(NamedTuple):
  """What depends on the inputs alone if nothing is projected."""

  outputs: Float[Array, "batch inputs embed"]
  inputs: Int[Array, "batch inputs"]


@dataclasses.dataclass(frozen=True)
class ReprojectingScorer(network.T5Scorer):
  """A T5 whose every call projects the encoder's output; `types.Scorer`.

  Its logits are those of `network.T5Scorer`.

  Attributes:
    pinned: whether the compiler is kept from moving the projections out of a
      loop.
  """

  pinned: bool = False

  def start(
      self, params: Params, inputs: Int[Array, "batch inputs"]
  ) -> Encoded:
    """Encodes the inputs and projects nothing."""
    return Encoded(self._apply("encode", params, inputs), inputs)

  def extend(
      self,
      params: Params,
      context: Encoded,
      cache: Cache,
      tokens: Int[Array, "batch block"],
      index: Int[Array, " batch"],
      only: Int[Array, " batch"] | None = None,
  ) -> tuple[Float[Array, "batch places vocab"], Cache]:
    """Projects, then appends a block; see `types.Scorer.extend`."""
    outputs = context.outputs
    if self.pinned:
      # Tied to the tokens, the projections change from step to step as far as
      # the compiler can tell.
      outputs, tokens = jax.lax.optimization_barrier((outputs, tokens))
    project = lambda module, outputs, inputs: module.decoder.start(
        outputs, inputs > 0
    )
    projected = self._apply(project, params, outputs, context.inputs)
    return super().extend(params, projected, cache, tokens, index, only)


def make_scorer(config: T5Config, projection: str) -> network.T5Scorer:
  """Returns a model that projects as asked, by one of `PROJECTIONS`."""
  if projection == "once":
    return network.T5Scorer(config)
  return ReprojectingScorer(config, pinned=projection == "every_step")


def with_projection(decoder: Decoder, projection: str) -> Decoder:
  """A decoder of the same tokens whose models project as asked.

  Args:
    decoder: of an encoder-decoder T5, on one device.
    projection: one of `PROJECTIONS`.

  Raises:
    ValueError: it is not, or the target has no encoder.
  """
  if projection not in PROJECTIONS:
    raise ValueError(
        f"`projection` must be one of {PROJECTIONS}. Got {projection!r}."
    )
  target, draft = decoder.models.target, decoder.models.draft
  if target.config.decoder_only:
    raise ValueError(
        "`decoder` must have a target with an encoder. Got a decoder-only one."
    )
  # A table of n-grams has nothing to project.
  if draft and isinstance(draft.scorer, network.T5Scorer):
    scorer = make_scorer(draft.scorer.config, projection)
    draft = dataclasses.replace(draft, scorer=scorer)
  changed = copy.copy(decoder)
  changed.models = Models(make_scorer(target.config, projection), draft)
  return changed


def matmuls_in_loops(text: str) -> int:
  """Counts the matrix products of a compiled program that loops repeat.

  Args:
    text: the optimised program, as `Compiled.as_text` gives it.
  """
  computations = hlo.Program(text).computations
  instructions = itertools.chain.from_iterable(computations.values())
  loops = [i for i in instructions if i.opcode == "while"]
  waiting = [name for loop in loops for name in loop.called("body")]
  repeated = set()
  while waiting:
    name = waiting.pop()
    if name not in repeated:
      repeated.add(name)
      for instruction in computations[name]:
        waiting += itertools.chain(*map(instruction.called, _CALLS))
  return sum(
      instruction.opcode in _MATMULS
      for name in repeated
      for instruction in computations[name]
  )

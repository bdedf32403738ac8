"""Cross-attention keys and values made once, or in every decode step.

Stock T5X writes a decode step that projects the encoder's output to keys and
values again. `Decoder` projects it once per text. Here is the other way as a
wrapper of a scorer, for measuring what it costs; the loop does not know of it.
"""

import copy
import dataclasses
import itertools
from typing import NamedTuple

import jax
from jaxtyping import Array, Float, Int

from spec_t5x import network
from spec_t5x.cache import Context
from spec_t5x.decoder import Decoder
from spec_t5x.decoding_types import Models
from spec_t5x.drafts import ModelDraft
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
class ReprojectingScorer:
  """A T5 whose every call projects the encoder's output; `types.Scorer`.

  Its logits are those of the scorer inside.

  Attributes:
    scorer: the T5.
    pinned: whether the compiler is kept from moving the projections out of a
      loop.
  """

  scorer: network.T5Scorer
  pinned: bool

  @property
  def vocab_size(self) -> int:
    """Number of logits per position, padded ids included."""
    return self.scorer.vocab_size

  def start(
      self, params: Params, inputs: Int[Array, "batch inputs"]
  ) -> Encoded:
    """Encodes the inputs and projects nothing."""
    module = network.build(self.scorer.config)
    outputs = module.apply({"params": params}, inputs, method="encode")
    return Encoded(outputs, inputs)

  def init_cache(self, batch: int, length: int) -> Cache:
    """Returns buffers for `length` positions of `batch` rows."""
    return self.scorer.init_cache(batch, length)

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
    projected = self._project(params, outputs, context.inputs)
    return self.scorer.extend(params, projected, cache, tokens, index, only)

  def _project(self, params, outputs, inputs) -> Context:
    module = network.build(self.scorer.config)
    project = lambda module, outputs, inputs: module.decoder.start(
        outputs, inputs > 0
    )
    return module.apply({"params": params}, outputs, inputs, method=project)


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
  changed = copy.copy(decoder)
  if projection == "once":
    return changed
  pinned = projection == "every_step"
  # A table of n-grams has nothing to project.
  if draft and isinstance(draft.scorer, network.T5Scorer):
    scorer = ReprojectingScorer(draft.scorer, pinned)
    draft = ModelDraft(scorer, draft.gamma)
  changed.models = Models(ReprojectingScorer(target, pinned), draft)
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

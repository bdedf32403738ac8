"""The decoding loop, compiled ahead of time for devices that are not there.

Every input is a shape with a sharding: no array is ever made, so a T5-XXL
compiles on a machine that could not hold it.
"""

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import Mesh

from spec_t5x import decoding, network, partitioning
from spec_t5x.config import T5Config
from spec_t5x.decoding_types import Models, Rows, Settings, Weights
from spec_t5x.drafts import ModelDraft
from spec_t5x.law import Sampling
from spec_t5x.tpu import hlo
from spec_t5x.tpu.counting import abstract_params
from spec_t5x.types import Params


@dataclasses.dataclass(frozen=True)
class Loop:
  """What is compiled: one text, decoded speculatively, encoders included.

  Attributes:
    target: the large model, in T5X's layout.
    draft: the small model, which every device holds whole.
    gamma: tokens drafted in one iteration.
    inputs: positions of the inputs.
    targets: most tokens decoded.
    temperature: 0 compiles decoding by argmax, which has no laws.
  """

  target: T5Config
  draft: T5Config
  gamma: int
  inputs: int
  targets: int
  temperature: float

  def __post_init__(self):
    """Checks what gin lets through."""
    for name in ("gamma", "inputs", "targets"):
      if getattr(self, name) < 1:
        raise ValueError(
            f"`{name}` must be at least 1. Got {getattr(self, name)}."
        )
    for name in ("target", "draft"):
      if getattr(self, name).decoder_only:
        raise ValueError(f"`{name}` must have an encoder. Got none.")


def lower(loop: Loop, devices: Sequence[jax.Device]) -> jax.stages.Lowered:
  """Traces the loop for devices, the target split over all of them.

  Raises:
    ValueError: the devices do not divide the target.
  """
  mesh = partitioning.make_mesh(1, len(devices), devices)
  whole = partitioning.REPLICATED_RULES
  models = Models(
      network.T5Scorer(loop.target, partitioning.AXIS_RULES),
      ModelDraft(network.T5Scorer(loop.draft, whole), loop.gamma),
  )
  weights = Weights(
      placed_params(loop.target, mesh, partitioning.AXIS_RULES),
      placed_params(loop.draft, mesh, whole),
  )
  settings = Settings(
      max_length=loop.targets,
      sampling=Sampling(
          greedy=loop.temperature == 0, num_ids=loop.target.vocab_size
      ),
  )
  decode = jax.jit(
      decoding.decode,
      static_argnums=(0, 1),
      out_shardings=partitioning.replicated(mesh),
  )
  with partitioning.on_mesh(mesh):
    return decode.lower(
        models, settings, weights, *text_shapes(loop.inputs, mesh)
    )


def compile_loop(loop: Loop, devices: Sequence[jax.Device]) -> dict[str, Any]:
  """Compiles the loop and returns what the compiler tells of it.

  Args:
    loop: what to compile.
    devices: as `chips.devices` describes them.

  Returns:
    CPU seconds of compilation; bytes on each device; what one iteration and the
    rest of the program do, see `hlo.Tally`; bytes of the arrays that the loop
    carries, and the same with their padding.

  Raises:
    ValueError: the devices do not divide the target.
  """
  lowered = lower(loop, devices)
  started = time.process_time()
  compiled = lowered.compile()
  seconds = time.process_time() - started
  memory = compiled.memory_analysis()
  program = hlo.Program(compiled.as_text())
  carried = list(hlo.sizes(program.decoding_loop().shape))
  return {
      "compile_cpu_seconds": round(seconds, 1),
      "argument_bytes": memory.argument_size_in_bytes,
      "temporary_bytes": memory.temp_size_in_bytes,
      "output_bytes": memory.output_size_in_bytes,
      "code_bytes": memory.generated_code_size_in_bytes,
      "iteration": dataclasses.asdict(program.per_iteration()),
      "outside": dataclasses.asdict(program.outside()),
      "carried_bytes": sum(size for size, _ in carried),
      "carried_padded_bytes": sum(padded for _, padded in carried),
  }


def placed_params(
    config: T5Config, mesh: Mesh, rules: partitioning.AxisRules
) -> Params:
  """Shapes of a model's parameters, each on its devices."""
  place = lambda param, sharding: jax.ShapeDtypeStruct(
      param.shape, param.dtype, sharding=sharding
  )
  shardings = partitioning.param_shardings(config, mesh, rules)
  return jax.tree.map(place, dict(abstract_params(config)), shardings)


def text_shapes(inputs: int, mesh: Mesh) -> tuple[jax.ShapeDtypeStruct, Rows]:
  """Shapes of one input of so many positions, and of its row."""
  sharding = partitioning.batch_sharding(mesh)
  shape = lambda shape, dtype: jax.ShapeDtypeStruct(
      shape, dtype, sharding=sharding
  )
  rows = Rows(
      prompt=shape((1, 0), "int32"),
      limit=shape((1,), "int32"),
      temperature=shape((1,), "float32"),
      keys=shape((1,), jax.eval_shape(jax.random.key, 0).dtype),
  )
  return shape((1, inputs), "int32"), rows

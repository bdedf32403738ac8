"""Walltime: what one step costs, and two decoders side by side."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int

from spec_t5x import (
    decoding,
    partitioning,
    placement,
    processes,
    standardize,
)
from spec_t5x.decoder import Decoder, Request
from spec_t5x.decoding_types import Decoded
from spec_t5x.types import Context, Params, Scorer

_start = jax.jit(decoding.start, static_argnums=0)
_generate = jax.jit(decoding.generate, static_argnums=(0, 1))


def seconds(run: Callable[[], Any]) -> tuple[float, Any]:
  """Returns the seconds until the result of `run` is there, and the result."""
  started = time.perf_counter()
  result = jax.block_until_ready(run())
  return time.perf_counter() - started, result


class TimedDecode(NamedTuple):
  """One decode, its two parts timed apart.

  Attributes:
    encode_seconds: encoders of target and draft, projections included.
    decode_seconds: the loop.
    decoded: tokens and counts, on the host.
  """

  encode_seconds: float
  decode_seconds: float
  decoded: Decoded


def timed_decode(decoder: Decoder, request: Request) -> TimedDecode:
  """Decodes a prepared batch; the first call of a shape also compiles.

  Raises:
    FloatingPointError: a model's logits are not finite.
  """
  models, settings, weights = decoder.models, request.settings, decoder.weights
  num_rows = len(request.rows.limit)
  ids, rows = placement.place_batch(
      decoder.mesh, settings.num_decodes, request.ids, request.rows
  )
  with partitioning.on_mesh(decoder.mesh):
    encode_seconds, contexts = seconds(lambda: _start(models, weights, ids))
    decode_seconds, decoded = seconds(
        lambda: _generate(models, settings, weights, contexts, rows)
    )
  decoded = jax.tree.map(lambda x: x[:num_rows], processes.fetch(decoded))
  if not decoded.finite.all():
    raise FloatingPointError("The logits of a model are not finite.")
  return TimedDecode(encode_seconds, decode_seconds, decoded)


def lower_decode(decoder: Decoder, request: Request) -> jax.stages.Lowered:
  """The program of a whole decode, to be compiled and looked at."""
  decode = jax.jit(decoding.decode, static_argnums=(0, 1))
  return decode.lower(
      decoder.models,
      request.settings,
      decoder.weights,
      request.ids,
      request.rows,
  )


class Pair(NamedTuple):
  """The same input, decoded to the same number of tokens both ways.

  Attributes:
    plain: the target alone.
    speculative: with the draft.
  """

  plain: TimedDecode
  speculative: TimedDecode


def timed_pair(
    plain: tuple[Decoder, Request],
    speculative: tuple[Decoder, Request],
    plain_first: bool,
) -> Pair:
  """Times both decoders on one input, one right after the other.

  Each is timed right after an untimed decode of its own, as it runs in a
  program that decodes text after text: else what the other decoder pushed out
  of the processor's caches is timed, too.

  Raises:
    RuntimeError: they emitted different numbers of tokens.
  """
  order = (plain, speculative) if plain_first else (speculative, plain)
  timed = []
  for each in order:
    timed_decode(*each)
    timed.append(timed_decode(*each))
  pair = Pair(*(timed if plain_first else timed[::-1]))
  counts = [t.decoded.counts.emitted.tolist() for t in pair]
  if counts[0] != counts[1]:
    raise RuntimeError(
        f"Both decoders must emit equal numbers of tokens. Got {counts}."
    )
  return pair


def step_seconds(
    scorers: Sequence[tuple[Scorer, Params, int]],
    inputs: Int[np.ndarray, "batch inputs"],
    length: int,
    repeats: int,
    steps: int = 32,
    mesh: Mesh | None = None,
) -> list[list[float]]:
  """Seconds of one model call in a jitted loop, for several models in turn.

  Args:
    scorers: model, parameters, tokens per call.
    inputs: token ids to encode once, outside the timing.
    length: positions of the buffers.
    repeats: measurements of each; all models are measured before any is
      measured again, so that a slow spell of the machine hits all.
    steps: calls per measurement.
    mesh: devices that the parameters lie on, each part of `data` of which gets
      `inputs`; None for one.

  Returns:
    For each model, `repeats` values. Compile and warm-up are left out.
  """
  if mesh is not None:
    inputs = np.repeat(inputs, mesh.shape["data"], axis=0)
    inputs = partitioning.put(inputs, partitioning.batch_sharding(mesh))
  loops = []
  with partitioning.on_mesh(mesh):
    for scorer, params, block in scorers:
      context = jax.jit(scorer.start)(params, inputs)
      loop = _step_loop(scorer, inputs.shape[0], length, block, steps)
      jax.block_until_ready(loop(params, context))
      loops.append((loop, params, context))
    values = [[] for _ in loops]
    for _ in range(repeats):
      for taken, (loop, params, context) in zip(values, loops, strict=True):
        elapsed, _ = seconds(lambda: loop(params, context))  # noqa: B023
        taken.append(elapsed / steps)
  return values


def _step_loop(
    scorer: Scorer, batch: int, length: int, block: int, steps: int
) -> Callable[[Params, Context], Float[Array, "..."]]:
  """A jitted loop of calls, each of which waits for the one before."""

  def loop(params, context):
    def step(number, carry):
      cache, tokens = carry
      index = jnp.full(batch, number % (length - block))
      logits, cache = scorer.extend(params, context, cache, tokens, index)
      return cache, standardize.argmax(logits)

    tokens = jnp.ones((batch, block), "int32")
    carry = scorer.init_cache(batch, length), tokens
    return jax.lax.fori_loop(0, steps, step, carry)[1]

  return jax.jit(loop)

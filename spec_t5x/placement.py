"""Where a decode runs: on one device, or on a mesh of them.

On a mesh the inputs go over the `data` axis and the target over `model`. Each
device computes its part of every step, all take the same decisions, and the
tokens are those of one device, up to the rounding of sums taken in parts.
"""

from collections.abc import Callable

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Int

from spec_t5x import decoding, partitioning
from spec_t5x.decoding_types import Decoded, Models, Rows, Settings, Weights
from spec_t5x.draft import AnyDraft
from spec_t5x.drafts import (
    ModelDraft,
    NgramScorer,
    NgramTable,
    PromptLookup,
    PromptLookupDraft,
)
from spec_t5x.model import Model, for_decoding
from spec_t5x.network import T5Scorer
from spec_t5x.types import Draft, Params

Decode = Callable[
    [Models, Settings, Weights, Int[np.ndarray, "batch inputs"], Rows], Decoded
]

# The draft is small: replicated it needs no communication between its steps.
_DRAFT_RULES = {
    "replicated": partitioning.REPLICATED_RULES,
    "sharded": partitioning.AXIS_RULES,
}


def place_target(model: Model, mesh: Mesh | None) -> tuple[T5Scorer, Params]:
  """Returns the target as the loop sees it, split over `model` on a mesh.

  Raises:
    ValueError: an axis of the target is not divisible by the devices that it
      is split over.
  """
  return _place(model, mesh, partitioning.AXIS_RULES)


def place_draft(
    draft: AnyDraft | None, gamma: int, mesh: Mesh | None, draft_sharding: str
) -> tuple[Draft | None, Params]:
  """Returns the draft as the loop sees it; a table is held whole everywhere.

  Args:
    draft: None for plain decoding.
    gamma: tokens proposed in one iteration.
    mesh: None for one device.
    draft_sharding: 'replicated' (each device holds it whole) or 'sharded' (as
      the target).

  Raises:
    ValueError: `draft_sharding` is neither of the two, or an axis of the draft
      is not divisible by the devices that it is split over.
  """
  if draft_sharding not in _DRAFT_RULES:
    raise ValueError(
        f"`draft_sharding` must be one of {tuple(_DRAFT_RULES)}."
        f" Got {draft_sharding!r}."
    )
  if draft is None:
    return None, None
  if isinstance(draft, PromptLookup):
    return PromptLookupDraft(gamma, draft.max_ngram), ()
  if isinstance(draft, NgramTable):
    where = partitioning.replicated(mesh) if mesh else None
    scorer = NgramScorer(draft.vocab_size)
    return ModelDraft(scorer, gamma), partitioning.put(draft, where)
  scorer, params = _place(draft, mesh, _DRAFT_RULES[draft_sharding])
  return ModelDraft(scorer, gamma), params


def _place(model, mesh, rules):
  config, params = for_decoding(model, mesh, rules)
  return T5Scorer(config, () if mesh is None else rules), params


def jit_decode(mesh: Mesh | None) -> Decode:
  """Compiles the loop; the result is fetched to the host.

  Args:
    mesh: None for one device. On a mesh, inputs are added until the `data` axis
      divides them; they are finished from the start and left out of the result.
  """
  if mesh is None:
    decode = jax.jit(decoding.decode, static_argnums=(0, 1))
    return lambda *args: jax.device_get(decode(*args))
  # Every process of a pod gets the whole result.
  decode = jax.jit(
      decoding.decode,
      static_argnums=(0, 1),
      out_shardings=partitioning.replicated(mesh),
  )

  def run(models, settings, weights, ids, rows):
    num_rows = len(rows.limit)
    data = place_batch(mesh, settings.num_decodes, ids, rows)
    with partitioning.on_mesh(mesh):
      decoded = decode(models, settings, weights, *data)
    return jax.tree.map(lambda x: x[:num_rows], jax.device_get(decoded))

  return run


def place_batch(
    mesh: Mesh | None,
    num_decodes: int,
    ids: Int[np.ndarray, "batch inputs"],
    rows: Rows,
) -> tuple[Int[Array, "batch inputs"], Rows]:
  """Moves inputs onto a mesh, with more behind them if it divides them not.

  Args:
    mesh: None leaves them as they are.
    num_decodes: rows of each input.
    ids: token ids.
    rows: see `Rows`; those added have nothing left to decode.
  """
  if mesh is None:
    return ids, rows
  data = _fill_up(num_decodes, ids, rows, mesh.shape["data"])
  return partitioning.put(data, partitioning.batch_sharding(mesh))


def _fill_up(num_decodes: int, ids, rows: Rows, multiple: int):
  """Repeats the last input, with nothing left to decode."""
  num_inputs = -(-len(ids) // multiple) * multiple
  num_rows = num_decodes * num_inputs
  fill = lambda x, size: x[np.minimum(np.arange(size), len(x) - 1)]
  filled = jax.tree.map(lambda x: fill(x, num_rows), rows)
  limit = np.where(np.arange(num_rows) < len(rows.limit), filled.limit, 0)
  return fill(ids, num_inputs), filled._replace(limit=limit)

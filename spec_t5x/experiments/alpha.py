"""Alpha as Leviathan et al. 2023, section 4.2, measure it.

The expectation of sum_x min(p(x), q(x)) (Corollary 3.6; with lenience l, A.5,
of p(x) / l and q(x)) over the positions of texts that the target generated.
It depends on neither gamma nor any draw.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int

from spec_t5x import (
    inputs,
    partitioning,
    placement,
    processes,
    standardize,
)
from spec_t5x.drafts import NgramTable
from spec_t5x.law import Law, Sampling
from spec_t5x.model import Model

_BATCH = 16


def overlaps(
    target: Model,
    draft: Model | NgramTable,
    sources: Sequence[Sequence[int]],
    texts: Sequence[Sequence[int]],
    temperature: float,
    lenience: float = 1.0,
    mesh: Mesh | None = None,
    top_p: float = 0.0,
) -> list[dict[str, Any]]:
  """Returns the overlap of both laws at every token of every text.

  Args:
    target: the model that generated the texts.
    draft: the model or table to compare.
    sources: token ids of the inputs, EOS included; of decoder-only models the
      prompts, without.
    texts: token ids that the target generated, EOS included.
    temperature: of both laws; below 1e-4 the overlap is 1 where the argmax
      agrees and 0 elsewhere.
    lenience: l in (0, 1]. At temperature 0 it acts before the laws become
      one-hot: the overlap is 1 where p of the draft's argmax is at least l
      times the largest p.
    mesh: devices for the target and the texts; None for one.
    top_p: mass of the nucleus that both laws keep; 0 for all tokens.

  Returns:
    One row per text: `tokens`, and `overlap`, one value per token.
  """
  num_ids = inputs.num_ids(target, draft, None)
  sampling = Sampling(greedy=False, num_ids=num_ids, top_p=top_p)
  overlap_of, weights = _jitted_overlap(
      target, draft, sampling, temperature, lenience, mesh
  )
  # A prompt is the beginning of its text.
  skipped = [0] * len(texts)
  if target.config.decoder_only:
    skipped = list(map(len, sources))
    texts = [[*ids, *text] for ids, text in zip(sources, texts, strict=True)]
    sources = [[]] * len(texts)
  parts = mesh.shape["data"] if mesh else 1
  size = -(-_BATCH // parts) * parts
  sharding = partitioning.batch_sharding(mesh) if mesh else None
  rows = {}
  order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
  for first in range(0, len(order), size):
    numbers = order[first : first + size]
    # A full batch of few lengths compiles few programs.
    filled = numbers + numbers[:1] * (size - len(numbers))
    padded = [
        _padded(name, [ids[i] for i in filled], num_ids)
        for name, ids in (("sources", sources), ("texts", texts))
    ]
    with partitioning.on_mesh(mesh):
      values = overlap_of(weights, *partitioning.put(padded, sharding))
    values = processes.fetch(values)
    rows |= dict(zip(numbers, values, strict=False))
  return [
      {
          "example": i,
          "tokens": len(text) - skip,
          "overlap": [
              round(float(value), 6) for value in rows[i][skip : len(text)]
          ],
      }
      for i, (text, skip) in enumerate(zip(texts, skipped, strict=True))
  ]


def _padded(name: str, rows: Sequence[Sequence[int]], num_ids: int):
  """Token ids as an array whose length is a multiple of 32."""
  return inputs.pad_to(inputs.token_array(name, rows, num_ids), 32)


def _jitted_overlap(target, draft, sampling, temperature, lenience, mesh):
  """Returns the overlap of a batch of texts, and the weights it takes."""
  target_scorer, target_params = placement.place_target(target, mesh)
  proposer, draft_params = placement.place_draft(draft, 1, mesh, "replicated")
  scorers = (target_scorer, proposer.scorer)

  @jax.jit
  def overlap(
      weights,
      source: Int[Array, "batch inputs"],
      text: Int[Array, "batch length"],
  ) -> Float[Array, "batch length"]:
    batch, length = text.shape
    shifted = jnp.pad(text, ((0, 0), (1, 0)))[:, :-1]
    start = jnp.zeros(batch, "int32")
    law = Law(jnp.full(batch, temperature), sampling, scorers[0].vocab_size)
    logits = []
    for scorer, params in zip(scorers, weights, strict=True):
      context = scorer.start(params, source)
      cache = scorer.init_cache(batch, length)
      raw, _ = scorer.extend(params, context, cache, shifted, start)
      logits.append(law.adjust(raw, shifted, start))
    if lenience < 1 and temperature <= standardize.GREEDY_TEMPERATURE:
      return _greedy_overlap(*logits, lenience)
    p, q = map(law.probs, logits)
    return jnp.minimum(p / lenience, q).sum(axis=-1)

  return overlap, (target_params, draft_params)


def _greedy_overlap(
    target_logits: Float[Array, "batch length vocab"],
    draft_logits: Float[Array, "batch length vocab"],
    lenience: float,
) -> Float[Array, "batch length"]:
  """Whether `verification.verify_greedy` accepts the draft's argmax."""
  drafted = jnp.argmax(draft_logits, axis=-1)[..., None]
  logit = jnp.take_along_axis(target_logits, drafted, axis=-1)[..., 0]
  ratio = jnp.exp(logit - target_logits.max(axis=-1))
  return (ratio >= lenience).astype("float32")

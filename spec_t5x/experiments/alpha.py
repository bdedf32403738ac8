"""Alpha as Leviathan et al. 2023, section 4.2, measure it.

The expectation of sum_x min(p(x), q(x)) (Corollary 3.6) over the positions of
texts that the target generated. It depends on neither gamma nor any draw.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from spec_t5x import inputs
from spec_t5x.law import Law, Sampling
from spec_t5x.model import Model, for_decoding
from spec_t5x.network import T5Scorer

_BATCH = 16


def overlaps(
    target: Model,
    draft: Model,
    sources: Sequence[Sequence[int]],
    texts: Sequence[Sequence[int]],
    temperature: float,
) -> list[dict[str, Any]]:
  """Returns the overlap of both laws at every token of every text.

  Args:
    target: the model that generated the texts.
    draft: the model to compare.
    sources: token ids of the inputs, EOS included.
    texts: token ids that the target generated, EOS included.
    temperature: of both laws; below 1e-4 the overlap is 1 where the argmax
      agrees and 0 elsewhere.

  Returns:
    One row per text: `tokens`, and `overlap`, one value per token.
  """
  num_ids = inputs.num_ids(target, draft, None)
  models = [for_decoding(model) for model in (target, draft)]
  scorers = [T5Scorer(config) for config, _ in models]
  weights = [params for _, params in models]
  sampling = Sampling(greedy=False, num_ids=num_ids)

  @jax.jit
  def batch_overlaps(
      weights,
      source: Int[Array, "batch inputs"],
      text: Int[Array, "batch length"],
  ) -> Float[Array, "batch length"]:
    batch, length = text.shape
    shifted = jnp.pad(text, ((0, 0), (1, 0)))[:, :-1]
    start = jnp.zeros(batch, "int32")
    rule = Law(jnp.full(batch, temperature), sampling, scorers[0].vocab_size)
    laws = []
    for scorer, params in zip(scorers, weights, strict=True):
      context = scorer.start(params, source)
      cache = scorer.init_cache(batch, length)
      logits, _ = scorer.extend(params, context, cache, shifted, start)
      laws.append(rule.probs(rule.adjust(logits, shifted, start)))
    return jnp.minimum(*laws).sum(axis=-1)

  rows = []
  order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
  for first in range(0, len(order), _BATCH):
    numbers = order[first : first + _BATCH]
    # A full batch of few lengths compiles few programs.
    numbers += numbers[:1] * (_BATCH - len(numbers))
    source = inputs.pad_to(
        inputs.token_array("sources", [sources[i] for i in numbers], num_ids),
        32,
    )
    text = inputs.pad_to(
        inputs.token_array("texts", [texts[i] for i in numbers], num_ids), 32
    )
    values = np.asarray(batch_overlaps(weights, source, text))
    rows += [
        {
            "example": i,
            "tokens": len(texts[i]),
            "overlap": [round(float(v), 6) for v in row[: len(texts[i])]],
        }
        for i, row in zip(dict.fromkeys(numbers), values, strict=False)
    ]
  return sorted(rows, key=lambda row: row["example"])

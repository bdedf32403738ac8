"""A table of laws that is read through a shortlist, as a draft's logits are."""

import dataclasses

import numpy as np
from jax import numpy as jnp
from toy_laws import VOCAB
from toy_models import TableScorer

from spec_t5x import layers, shortlist
from spec_t5x.config import T5Config
from spec_t5x.drafts.model import ModelDraft
from spec_t5x.model import Model

IDS = (1, 3)


def _params():
  """Of the output projection: those of a model whose embedding is 1."""
  config = T5Config(VOCAB, VOCAB, 1, 1, 1, 1, 1, logits_via_embedding=True)
  embedder = {"embedding": np.eye(VOCAB, dtype="float32")}
  model = Model("toy", config, {"token_embedder": embedder, "decoder": {}})
  return shortlist.shorten(model, IDS).params["decoder"]["shortlist"]


@dataclasses.dataclass(frozen=True)
class ListedScorer(TableScorer):
  """The table's logits of the listed tokens; they go through the real layer."""

  def extend(self, params, context, cache, tokens, index, only=None):
    logits, cache = super().extend(params, context, cache, tokens, index, only)
    # A product with -inf would be NaN.
    logits = jnp.maximum(logits, -1e9)
    module = layers.Shortlist(len(IDS), VOCAB)
    return module.apply({"params": _params()}, logits), cache


def listed_draft(scorer, gamma):
  """A draft that proposes the listed tokens."""
  return ModelDraft(ListedScorer(scorer.vocab_size), gamma)


@dataclasses.dataclass(frozen=True)
class WholeLawDraft(ModelDraft):
  """A fault: draws listed tokens, and returns the law from before the list."""

  def propose(self, params, context, cache, tokens, index, law, bits):
    known = (params, context, cache, tokens, index, law, bits)
    proposal, cache = listed_draft(self.scorer, self.gamma).propose(*known)
    return proposal._replace(probs=super().propose(*known)[0].probs), cache

"""A decoder without models, and the smallest models with a vocabulary."""

import dataclasses
from types import SimpleNamespace

import numpy as np

from spec_t5x import checkpoints, vocabulary
from spec_t5x.checkpoints import layout
from spec_t5x.config import T5Config
from spec_t5x.statistics import DecodeStatistics

CONFIG = T5Config(
    vocab_size=8000,
    emb_dim=8,
    num_heads=1,
    head_dim=8,
    mlp_dim=8,
    num_encoder_layers=1,
    num_decoder_layers=1,
)

DECODER_ONLY = dataclasses.replace(
    CONFIG, num_encoder_layers=0, mlp_activations=("gelu",)
)


def plain_statistics(emitted):
  """Counts of a plain decode."""
  return DecodeStatistics((emitted,), (), (), (), emitted, emitted)


class CopyingDecoder:
  """Stands in for `Decoder`: copies its inputs and emits a PAD behind them."""

  models = SimpleNamespace(
      target=SimpleNamespace(config=SimpleNamespace(decoder_only=False))
  )

  def __init__(self, *_, num_decodes=1, vocabulary="any", **__):
    self.num_decodes = num_decodes
    self.vocabulary = vocabulary

  def encode(self, texts):
    return [[2 + ord(letter) for letter in text] + [1] for text in texts]

  def __call__(self, ids, example_ids):
    decodes = lambda x: np.repeat(x, self.num_decodes, axis=0)
    lengths = (ids != 0).sum(axis=1) + 1
    tokens = decodes(np.pad(ids, ((0, 0), (0, 4))))
    log_probs = decodes(np.array(example_ids, np.float32)) / 3
    several = (self.num_decodes,) if self.num_decodes > 1 else ()
    shape = (len(ids), *several)
    texts = np.reshape([str(row[0]) for row in tokens], shape).tolist()
    return SimpleNamespace(
        tokens=tokens.reshape(*shape, -1),
        texts=texts if self.vocabulary else None,
        log_probs=log_probs.reshape(shape),
        per_decode=[plain_statistics(n) for n in decodes(lengths).tolist()],
    )


def save_model(
    directory, seed=0, noise=0.0, has_vocabulary=True, config=CONFIG
):
  """Writes a model of random weights.

  Args:
    directory: to be made.
    config: of the model.
    seed: of the weights.
    noise: share of other random weights in them, for a draft that is mostly
      right.
    has_vocabulary: whether the shipped vocabulary goes with it.
  """
  draw = lambda seed, shape: np.random.default_rng(seed).normal(size=shape)
  flat = {
      path: (1 - noise) * draw(seed, shape) + noise * draw(seed + 1, shape)
      for path, shape in layout.parameter_shapes(config).items()
  }
  return checkpoints.save_hugging_face(
      directory,
      config,
      layout.unflatten({k: v.astype(np.float32) for k, v in flat.items()}),
      "float32",
      vocabulary=vocabulary.SHIPPED_PATH if has_vocabulary else None,
  )

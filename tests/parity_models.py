"""The models that are compared with Hugging Face transformers."""

import numpy as np

from spec_t5x.checkpoints import layout
from spec_t5x.config import T5Config

VOCAB = 97
NUM_INPUTS = 200
INPUT_LENGTH = 9
MAX_DECODE_STEPS = 14
NUM_SCORED = 8


def config(activations, tied):
  return T5Config(
      vocab_size=VOCAB,
      emb_dim=16,
      num_heads=4,
      head_dim=8,
      mlp_dim=24,
      num_encoder_layers=3,
      num_decoder_layers=2,
      mlp_activations=activations,
      logits_via_embedding=tied,
  )


# T5 1.0, T5 1.1, and each with the other's output projection.
CONFIGS = {
    "relu_tied": config(("relu",), True),
    "relu_untied": config(("relu",), False),
    "gated_tied": config(("gelu", "linear"), True),
    "gated_untied": config(("gelu", "linear"), False),
}


def params(name):
  """Random weights that any machine can make again."""
  rng = np.random.default_rng(list(CONFIGS).index(name))
  tensors = {}
  for path, shape in sorted(layout.parameter_shapes(CONFIGS[name]).items()):
    values = rng.standard_normal(shape)
    if path.endswith("scale"):
      values = 1 + 0.1 * values
    elif path.endswith("kernel"):
      values *= 1.5 / np.sqrt(shape[0])
    tensors[path] = values.astype(np.float32)
  return layout.unflatten(tensors)


def inputs():
  """Ragged token ids [NUM_INPUTS, INPUT_LENGTH], EOS behind each."""
  rng = np.random.default_rng(7)
  ids = rng.integers(2, VOCAB, (NUM_INPUTS, INPUT_LENGTH))
  lengths = rng.integers(1, INPUT_LENGTH, NUM_INPUTS)
  for row, length in zip(ids, lengths, strict=True):
    row[length] = 1
    row[length + 1 :] = 0
  return ids.astype(np.int32)


def targets():
  """Token ids [NUM_SCORED, 10] to score, without padding."""
  return np.random.default_rng(8).integers(2, VOCAB, (NUM_SCORED, 10))

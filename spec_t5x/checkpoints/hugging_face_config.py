"""`config.json` of a Hugging Face T5, both ways."""

import functools
import json
import pathlib
from collections.abc import Mapping
from typing import Any

from spec_t5x.config import T5Config

# A decoder-only T5 is no model of `transformers`, which must not take it for
# an encoder-decoder and draw the missing weights at random.
_DECODER_ONLY_TYPE = "t5_decoder_only"
_MODEL_TYPES = ("t5", "mt5", _DECODER_ONLY_TYPE)

# `feed_forward_proj` -> `dense_act_fn`, T5X's activations.
_FEED_FORWARD = {
    "relu": ("relu", ("relu",)),
    "gelu_new": ("gelu_new", ("gelu",)),
    "gated-gelu": ("gelu_new", ("gelu", "linear")),
    "gated-silu": ("silu", ("silu", "linear")),
}

# What the network takes for granted; absence means the same.
_FIXED = {
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 0,
    "layer_norm_epsilon": 1e-6,
}


def read_fields(path: pathlib.Path) -> dict[str, Any]:
  """Reads a JSON object.

  Raises:
    FileNotFoundError: there is no such file.
    ValueError: the file holds something else.
  """
  try:
    fields = json.loads(path.read_text("utf-8"))
  except ValueError as error:
    raise ValueError(f"{path} is not valid JSON: {error}.") from error
  if not isinstance(fields, dict):
    raise ValueError(f"{path} must hold a JSON object.")
  return fields


def parse(fields: Mapping[str, Any], where: str) -> T5Config:
  """Reads an architecture off the fields of a `config.json`.

  The compute dtype is the user's choice, not the file's: activations are set
  to float32.

  Args:
    fields: content of the file.
    where: its name, for messages.

  Returns:
    The configuration. `logits_via_embedding` says whether decoder outputs are
    scaled by 1/sqrt(d_model), as in T5 1.0: see `HuggingFaceReader` for the
    projection they then meet.

  Raises:
    ValueError: a field is missing, malformed, or describes no T5 1.0, 1.1.
  """
  if fields.get("model_type") not in _MODEL_TYPES:
    raise ValueError(
        f"`model_type` in {where} must be one of {', '.join(_MODEL_TYPES)}."
        f" Got {fields.get('model_type')!r}."
    )
  for name, value in _FIXED.items():
    if fields.get(name) not in (None, value):
      raise ValueError(
          f"`{name}` in {where} must be {value}. Got {fields[name]!r}."
      )
  size = functools.partial(_size, fields, where)
  decoder_only = bool(fields.get("is_decoder_only", False))
  num_encoder_layers = 0 if decoder_only else size("num_layers")
  tied = fields.get("tie_word_embeddings") is not False
  return T5Config(
      vocab_size=size("vocab_size"),
      emb_dim=size("d_model"),
      num_heads=size("num_heads"),
      head_dim=size("d_kv"),
      mlp_dim=size("d_ff"),
      num_encoder_layers=num_encoder_layers,
      num_decoder_layers=size("num_decoder_layers", num_encoder_layers or None),
      mlp_activations=_activations(fields, where),
      # Before its version 5 `transformers` scaled tied models, and only them;
      # since then a flag of its own tells.
      logits_via_embedding=bool(fields.get("scale_decoder_outputs", tied)),
      dropout_rate=_rate(fields, "dropout_rate", 0.1, where),
      relpos_num_buckets=size("relative_attention_num_buckets", 32),
      relpos_max_distance=size("relative_attention_max_distance", 128),
  )


def _size(
    fields: Mapping[str, Any], where: str, name: str, default: int | None = None
) -> int:
  value = fields.get(name)
  value = default if value is None else value
  if value is None:
    raise ValueError(f"`{name}` is missing in {where}.")
  if type(value) is not int or value < 1:
    raise ValueError(
        f"`{name}` in {where} must be a positive integer. Got {value!r}."
    )
  return value


def _rate(
    fields: Mapping[str, Any], name: str, default: float, where: str
) -> float:
  value = fields.get(name, default)
  if not isinstance(value, int | float) or not 0 <= value < 1:
    raise ValueError(f"`{name}` in {where} must be in [0, 1). Got {value!r}.")
  return float(value)


def _activations(fields: Mapping[str, Any], where: str) -> tuple[str, ...]:
  gated = fields.get("is_gated_act")
  function = fields.get("dense_act_fn")
  name = fields.get("feed_forward_proj")
  if name is None:
    name = function or "relu"
    if gated:
      name = "gated-" + name.removesuffix("_new")
  if name not in _FEED_FORWARD:
    raise ValueError(
        f"`feed_forward_proj` in {where} must be one of"
        f" {', '.join(_FEED_FORWARD)}. Got {name!r}."
    )
  expected, activations = _FEED_FORWARD[name]
  if (function or expected) != expected or (
      gated is not None and gated != (len(activations) > 1)
  ):
    raise ValueError(
        f"{where} contradicts itself: `feed_forward_proj` is {name!r},"
        f" `dense_act_fn` {function!r}, `is_gated_act` {gated!r}."
    )
  return activations


def render(config: T5Config, dtype: str) -> dict[str, Any]:
  """Returns the fields of a `config.json`.

  Args:
    config: architecture of the model.
    dtype: dtype of the parameters, 'float32' or 'bfloat16'.

  Raises:
    ValueError: no Hugging Face T5 has these activations.
  """
  names = {value[1]: (key, value[0]) for key, value in _FEED_FORWARD.items()}
  if config.mlp_activations not in names:
    raise ValueError(
        f"`mlp_activations` must be one of {', '.join(map(str, names))} to be"
        f" saved as a Hugging Face T5. Got {config.mlp_activations}."
    )
  feed_forward, function = names[config.mlp_activations]
  fields = {
      "model_type": "t5",
      "architectures": ["T5ForConditionalGeneration"],
      "is_encoder_decoder": True,
      "vocab_size": config.vocab_size,
      "d_model": config.emb_dim,
      "d_kv": config.head_dim,
      "d_ff": config.mlp_dim,
      "num_heads": config.num_heads,
      "num_layers": config.num_encoder_layers,
      "num_decoder_layers": config.num_decoder_layers,
      "feed_forward_proj": feed_forward,
      "dense_act_fn": function,
      "is_gated_act": len(config.mlp_activations) > 1,
      "tie_word_embeddings": config.logits_via_embedding,
      "dropout_rate": config.dropout_rate,
      "relative_attention_num_buckets": config.relpos_num_buckets,
      "relative_attention_max_distance": config.relpos_max_distance,
      "torch_dtype": dtype,
      **_FIXED,
  }
  if config.decoder_only:
    del fields["architectures"]
    fields |= {
        "model_type": _DECODER_ONLY_TYPE,
        "is_decoder_only": True,
        "is_encoder_decoder": False,
    }
  return fields

"""The tensors of a T5: their T5X paths and shapes, both ways from a config.

A path joins the keys of the parameter tree by "/", for example
`encoder/layers_0/mlp/wi_0/kernel`. `parameter_shapes` says what
`network.build(config).init` would say, without tracing a model.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from flax import traverse_util

from spec_t5x.config import T5Config

Shape = tuple[int, ...]

FILE_DTYPES = ("float32", "bfloat16", "float16")
PARAMETER_DTYPES = ("float32", "bfloat16")

_ENCODER_PARTS = (
    ("attention", "pre_attention_layer_norm"),
    ("mlp", "pre_mlp_layer_norm"),
)
_DECODER_PARTS = (
    ("self_attention", "pre_self_attention_layer_norm"),
    ("encoder_decoder_attention", "pre_cross_attention_layer_norm"),
    ("mlp", "pre_mlp_layer_norm"),
)

LOGITS = "decoder/logits_dense/kernel"


class TensorSpec(NamedTuple):
  """What a file says of a tensor before it is read.

  Attributes:
    shape: its shape.
    dtype: name of its dtype, e.g. "bfloat16".
  """

  shape: Shape
  dtype: str


def layer_parts(stack: str, decoder_only: bool) -> tuple[tuple[str, str], ...]:
  """Residual branches of one layer, first to last, as (module, its norm)."""
  if stack == "encoder":
    return _ENCODER_PARTS
  if decoder_only:
    return (_DECODER_PARTS[0], _DECODER_PARTS[2])
  return _DECODER_PARTS


def embedding_path(decoder_only: bool) -> str:
  """Path of the token embedding; a decoder-only model's decoder owns it."""
  owner = "decoder/" if decoder_only else ""
  return owner + "token_embedder/embedding"


def parameter_shapes(config: T5Config) -> dict[str, Shape]:
  """Shapes of all tensors of a model by path, embedding first.

  Raises:
    ValueError: `config.packed` or `config.shortlist` is set. Files hold T5X's
      tree; parameters are packed and drafts shortened after they are loaded.
  """
  if config.packed:
    raise ValueError("`config.packed` must be False for a checkpoint.")
  if config.shortlist:
    raise ValueError("`config.shortlist` must be 0 for a checkpoint.")
  embed, joined = config.emb_dim, config.num_heads * config.head_dim
  attention = {name: (embed, joined) for name in ("query", "key", "value")}
  attention["out"] = (joined, embed)
  gates = len(config.mlp_activations)
  inner = ["wi"] if gates == 1 else [f"wi_{i}" for i in range(gates)]
  mlp = {name: (embed, config.mlp_dim) for name in inner}
  mlp["wo"] = (config.mlp_dim, embed)

  shapes: dict[str, Shape] = {
      embedding_path(config.decoder_only): (config.vocab_size, embed)
  }
  depths = {
      "encoder": config.num_encoder_layers,
      "decoder": config.num_decoder_layers,
  }
  for stack, depth in depths.items():
    if depth == 0:
      continue
    shapes[f"{stack}/relpos_bias/rel_embedding"] = (
        config.num_heads,
        config.relpos_num_buckets,
    )
    for i in range(depth):
      for module, norm in layer_parts(stack, config.decoder_only):
        shapes[f"{stack}/layers_{i}/{norm}/scale"] = (embed,)
        kernels = mlp if module == "mlp" else attention
        for name, shape in kernels.items():
          shapes[f"{stack}/layers_{i}/{module}/{name}/kernel"] = shape
    shapes[f"{stack}/{stack}_norm/scale"] = (embed,)
  if not config.logits_via_embedding:
    shapes[LOGITS] = (embed, config.vocab_size)
  return shapes


def infer_config(specs: Mapping[str, TensorSpec], where: str) -> T5Config:
  """Reads an architecture off the tensors of a T5X checkpoint.

  Shapes tell every size. They do not tell the activation: a gated MLP is
  taken for T5 1.1's ("gelu", "linear"), a plain one for T5 1.0's ("relu",).
  Nor do they tell at which distance position buckets end (128 is assumed).

  Args:
    specs: tensors found, by path.
    where: name of the checkpoint, for messages.

  Returns:
    The configuration of the model, activations in float32.

  Raises:
    ValueError: a tensor that tells a size is missing or has another rank.
  """

  def shape(path: str) -> Shape:
    if path not in specs or len(specs[path].shape) != 2:
      raise ValueError(
          f"The architecture of {where} cannot be told: it needs a tensor"
          f" `{path}` with two axes. (Scanned or packed layers are not T5X's"
          " `examples.t5` tree and are not supported.)"
      )
    return specs[path].shape

  decoder_only = embedding_path(True) in specs
  vocab_size, emb_dim = shape(embedding_path(decoder_only))
  num_heads, num_buckets = shape("decoder/relpos_bias/rel_embedding")
  _, joined = shape("decoder/layers_0/self_attention/query/kernel")
  if joined % num_heads:
    raise ValueError(
        f"The width of attention in {where} must be a multiple of its"
        f" {num_heads} heads. Got {joined}."
    )
  gated = "decoder/layers_0/mlp/wi_0/kernel" in specs
  inner = "wi_0" if gated else "wi"
  _, mlp_dim = shape(f"decoder/layers_0/mlp/{inner}/kernel")
  return T5Config(
      vocab_size=vocab_size,
      emb_dim=emb_dim,
      num_heads=num_heads,
      head_dim=joined // num_heads,
      mlp_dim=mlp_dim,
      num_encoder_layers=_depth(specs, "encoder"),
      num_decoder_layers=_depth(specs, "decoder"),
      mlp_activations=("gelu", "linear") if gated else ("relu",),
      logits_via_embedding=LOGITS not in specs,
      relpos_num_buckets=num_buckets,
  )


def _depth(paths: Mapping[str, Any], stack: str) -> int:
  found = (re.match(rf"{stack}/layers_(\d+)/", path) for path in paths)
  return max((int(match[1]) + 1 for match in found if match), default=0)


def check_specs(
    specs: Mapping[str, TensorSpec],
    expected: Mapping[str, Shape],
    where: str,
) -> None:
  """Checks that tensors are exactly those expected.

  Args:
    specs: tensors found, by name.
    expected: shapes wanted, by name.
    where: name of the checkpoint, for messages.

  Raises:
    ValueError: a tensor is missing, unknown, of another shape or of a dtype
      that is no parameter's.
  """
  for problem, names in (
      ("lacks", sorted(expected.keys() - specs.keys())),
      ("holds unknown", sorted(specs.keys() - expected.keys())),
  ):
    if names:
      more = f" and {len(names) - 4} more" if len(names) > 4 else ""
      raise ValueError(
          f"{where} {problem} tensors {', '.join(names[:4])}{more}."
      )
  for name, shape in expected.items():
    if specs[name].shape != shape:
      raise ValueError(
          f"`{name}` in {where} must have shape {shape}."
          f" Got {specs[name].shape}."
      )
    if specs[name].dtype not in FILE_DTYPES:
      raise ValueError(
          f"`{name}` in {where} must have a dtype among"
          f" {', '.join(FILE_DTYPES)}. Got {specs[name].dtype}."
      )


def parameter_dtype(dtype: str) -> np.dtype:
  """Returns a parameters' dtype by name.

  Raises:
    ValueError: `dtype` is neither 'float32' nor 'bfloat16'.
  """
  if dtype not in PARAMETER_DTYPES:
    raise ValueError(f"`dtype` must be 'float32' or 'bfloat16'. Got {dtype!r}.")
  return np.dtype(jnp.dtype(dtype))


def flatten(tree: Mapping[str, Any]) -> dict[str, Any]:
  """Nested dict to a dict by path."""
  return traverse_util.flatten_dict(tree, sep="/")


def unflatten(tensors: Mapping[str, Any]) -> dict[str, Any]:
  """Dict by path to nested dicts."""
  return traverse_util.unflatten_dict(dict(tensors), sep="/")

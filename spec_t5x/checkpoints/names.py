"""Names and axis orders of Hugging Face's T5 tensors."""

from spec_t5x.checkpoints import layout
from spec_t5x.checkpoints.layout import Shape

EMBEDDING = "shared.weight"
LOGITS = "lm_head.weight"

# Other names of the embedding table in one and the same file.
EMBEDDING_ALIASES = (
    EMBEDDING,
    "encoder.embed_tokens.weight",
    "decoder.embed_tokens.weight",
)

# A leftover in files converted from the first T5 code: in no model's graph.
UNUSED = (
    "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
)

_MODULES = {
    "attention": "SelfAttention",
    "self_attention": "SelfAttention",
    "encoder_decoder_attention": "EncDecAttention",
    "mlp": "DenseReluDense",
}
_PROJECTIONS = {"query": "q", "key": "k", "value": "v", "out": "o"}


def hugging_face_name(path: str, decoder_only: bool) -> str:
  """Translates a tensor's T5X path, as `layout.parameter_shapes` gives it.

  Example: `decoder/layers_3/mlp/wo/kernel` of an encoder-decoder is
  `decoder.block.3.layer.2.DenseReluDense.wo.weight`.
  """
  if path == layout.LOGITS:
    return LOGITS
  match path.split("/"):
    case [*_, "token_embedder", "embedding"]:
      return EMBEDDING
    case [stack, "relpos_bias", "rel_embedding"]:
      block = f"{stack}.block.0.layer.0.SelfAttention"
      return f"{block}.relative_attention_bias.weight"
    case [stack, _, "scale"]:
      return f"{stack}.final_layer_norm.weight"
    case [stack, layer, norm, "scale"]:
      branch = _branch(stack, layer, norm, decoder_only)
      return f"{branch}.layer_norm.weight"
    case [stack, layer, module, projection, "kernel"]:
      branch = _branch(stack, layer, module, decoder_only)
      name = _PROJECTIONS.get(projection, projection)
      return f"{branch}.{_MODULES[module]}.{name}.weight"
  raise AssertionError(f"{path} is no path of `layout.parameter_shapes`.")


def _branch(stack: str, layer: str, part: str, decoder_only: bool) -> str:
  """Name of the residual branch that holds a module or its norm."""
  parts = layout.layer_parts(stack, decoder_only)
  index = next(i for i, names in enumerate(parts) if part in names)
  block = layer.removeprefix("layers_")
  return f"{stack}.block.{block}.layer.{index}"


def is_transposed(path: str) -> bool:
  """Whether Hugging Face stores the tensor's axes the other way round.

  It does for kernels ([out, in]) and position biases ([buckets, heads]), not
  for the embedding.
  """
  return path.endswith(("/kernel", "/rel_embedding"))


def hugging_face_shape(path: str, shape: Shape) -> Shape:
  """Shape of the tensor in a Hugging Face file."""
  return shape[::-1] if is_transposed(path) else shape

"""Sizes and switches of a T5."""

import dataclasses

import jax.numpy as jnp

_ACTIVATIONS = ("relu", "gelu", "silu", "linear")


@dataclasses.dataclass(frozen=True)
class T5Config:
  """Sizes and switches of a T5, named as in T5X.

  Attributes:
    vocab_size: rows of the embedding, padding included.
    emb_dim: width of the residual stream.
    num_heads: attention heads.
    head_dim: dimension of each head.
    mlp_dim: width of the feed-forward block.
    num_encoder_layers: 0 for a decoder-only model.
    num_decoder_layers: layers of the decoder.
    mlp_activations: one name (`wi`) or two (`wi_0`, `wi_1`, multiplied).
    logits_via_embedding: tied output projection, with 1/sqrt(emb_dim).
    dtype: dtype of activations; parameters may be float32 or bfloat16.
    dropout_rate: used in training only.
    relpos_num_buckets: buckets of the relative position bias.
    relpos_max_distance: distances from here on share a bucket.
    float32_attention_logits: attention logits in float32 whatever the dtype.
    packed: parameters in the `decode` layout (see `packing`).
    shortlist: number of tokens that have logits (see `shortlist`); 0 for all.
  """

  vocab_size: int
  emb_dim: int
  num_heads: int
  head_dim: int
  mlp_dim: int
  num_encoder_layers: int
  num_decoder_layers: int
  mlp_activations: tuple[str, ...] = ("gelu", "linear")
  logits_via_embedding: bool = False
  dtype: str = "float32"
  dropout_rate: float = 0.0
  relpos_num_buckets: int = 32
  relpos_max_distance: int = 128
  float32_attention_logits: bool = False
  packed: bool = False
  shortlist: int = 0

  def __post_init__(self):
    """Checks every field that a user can set wrongly."""
    object.__setattr__(self, "mlp_activations", tuple(self.mlp_activations))
    object.__setattr__(self, "dtype", jnp.dtype(self.dtype).name)
    sizes = ("vocab_size", "emb_dim", "num_heads", "head_dim", "mlp_dim")
    for name in (*sizes, "num_decoder_layers"):
      if getattr(self, name) < 1:
        raise ValueError(
            f"`{name}` must be at least 1. Got {getattr(self, name)}."
        )
    if not 0 <= self.shortlist <= self.vocab_size:
      raise ValueError(
          f"`shortlist` must be from 0 to `vocab_size`, {self.vocab_size}."
          f" Got {self.shortlist}."
      )
    if self.num_encoder_layers < 0:
      raise ValueError(
          "`num_encoder_layers` must be 0 (decoder-only) or more."
          f" Got {self.num_encoder_layers}."
      )
    unknown = set(self.mlp_activations) - set(_ACTIVATIONS)
    if unknown or not self.mlp_activations:
      raise ValueError(
          f"`mlp_activations` must be names among {_ACTIVATIONS}."
          f" Got {self.mlp_activations}."
      )
    if self.dtype not in ("float32", "bfloat16"):
      raise ValueError(
          f"`dtype` must be 'float32' or 'bfloat16'. Got {self.dtype!r}."
      )

  @property
  def decoder_only(self) -> bool:
    """Whether there is no encoder."""
    return self.num_encoder_layers == 0

"""Encoder and decoder of T5 as stacks of pre-norm, residual layers."""

import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Bool, Float, Int

from spec_t5x import attention, biases, layers
from spec_t5x.cache import Cache, Context, KeysValues
from spec_t5x.config import T5Config

# Of a decoder without an encoder.
EMPTY_CONTEXT = Context()

Activations = Float[Array, "batch length embed"]
Bias = Float[Array, "batch heads length keys"]
MemoryBias = Float[Array, "batch 1 1 inputs"]


def _norm(config: T5Config, name: str | None = None) -> layers.LayerNorm:
  return layers.LayerNorm(dtype=config.dtype, name=name)


def _attention(
    config: T5Config, packed: bool = False, packed_qkv: bool = False
) -> attention.MultiHeadAttention:
  return attention.MultiHeadAttention(
      emb_dim=config.emb_dim,
      num_heads=config.num_heads,
      head_dim=config.head_dim,
      dtype=config.dtype,
      dropout_rate=config.dropout_rate,
      float32_logits=config.float32_attention_logits,
      packed=packed,
      packed_qkv=packed_qkv,
  )


def _mlp(config: T5Config, packed: bool = False) -> layers.Mlp:
  return layers.Mlp(
      mlp_dim=config.mlp_dim,
      activations=config.mlp_activations,
      dropout_rate=config.dropout_rate,
      dtype=config.dtype,
      packed=packed,
  )


def _biases(
    config: T5Config, bidirectional: bool
) -> biases.RelativePositionBiases:
  return biases.RelativePositionBiases(
      num_heads=config.num_heads,
      bidirectional=bidirectional,
      num_buckets=config.relpos_num_buckets,
      max_distance=config.relpos_max_distance,
      dtype=config.dtype,
  )


def _dropout(config: T5Config) -> nn.Dropout:
  return nn.Dropout(config.dropout_rate, broadcast_dims=(-2,))


def embedder(config: T5Config) -> layers.Embed:
  """Returns the token embedding, named by its owner."""
  return layers.Embed(config.vocab_size, config.emb_dim, dtype=config.dtype)


class EncoderLayer(nn.Module):
  """Bidirectional self-attention and feed-forward, pre-norm, residual."""

  config: T5Config

  def setup(self):
    """Declares submodules under T5X's names."""
    self.pre_attention_layer_norm = _norm(self.config)
    self.attention = _attention(self.config)
    self.pre_mlp_layer_norm = _norm(self.config)
    self.mlp = _mlp(self.config)
    self.dropout = _dropout(self.config)

  def __call__(
      self, x: Activations, bias: Bias, deterministic: bool
  ) -> Activations:
    """Adds what the layer makes of `x`."""
    y = self.attention(self.pre_attention_layer_norm(x), bias, deterministic)
    x = x + self.dropout(y, deterministic)
    y = self.mlp(self.pre_mlp_layer_norm(x), deterministic)
    return x + self.dropout(y, deterministic)


class Encoder(nn.Module):
  """The stack that reads the inputs."""

  config: T5Config

  def setup(self):
    """Declares submodules under T5X's names."""
    self.relpos_bias = _biases(self.config, bidirectional=True)
    self.layers = [
        EncoderLayer(self.config) for _ in range(self.config.num_encoder_layers)
    ]
    self.encoder_norm = _norm(self.config)
    self.dropout = _dropout(self.config)

  def __call__(
      self,
      x: Float[Array, "batch inputs embed"],
      visible: Bool[Array, "batch inputs"],
      deterministic: bool = True,
  ) -> Float[Array, "batch inputs embed"]:
    """Encodes embedded inputs; padding is not attended to."""
    length = x.shape[1]
    mask = nn.make_attention_mask(visible, visible, dtype=bool)
    bias = self.relpos_bias(jnp.arange(length)[None], length)
    bias = bias + biases.mask_to_bias(mask, bias.dtype)
    x = self.dropout(x, deterministic)
    for layer in self.layers:
      x = layer(x, bias, deterministic)
    return self.dropout(self.encoder_norm(x), deterministic)


class DecoderLayer(nn.Module):
  """Causal self-attention, attention to the inputs, feed-forward."""

  config: T5Config

  def setup(self):
    """Declares submodules under T5X's names."""
    cfg = self.config
    self.pre_self_attention_layer_norm = _norm(cfg)
    if not cfg.decoder_only:
      self.pre_cross_attention_layer_norm = _norm(cfg)
      self.encoder_decoder_attention = _attention(cfg, cfg.packed)
    self.self_attention = _attention(cfg, cfg.packed, cfg.packed)
    self.pre_mlp_layer_norm = _norm(cfg)
    self.mlp = _mlp(cfg, cfg.packed)
    self.dropout = _dropout(cfg)

  def start(self, encoded: Float[Array, "batch inputs embed"]) -> KeysValues:
    """Projects encoder outputs to this layer's keys and values."""
    return self.encoder_decoder_attention.project_memory(encoded)

  def _rest(
      self,
      x: Activations,
      memory: KeysValues | None,
      memory_bias: MemoryBias | None,
      deterministic: bool,
  ) -> Activations:
    """All that follows self-attention, the same in training and decoding."""
    if memory is not None:
      y = self.encoder_decoder_attention.attend_memory(
          self.pre_cross_attention_layer_norm(x),
          memory,
          memory_bias,
          deterministic,
      )
      x = x + self.dropout(y, deterministic)
    y = self.mlp(self.pre_mlp_layer_norm(x), deterministic)
    return x + self.dropout(y, deterministic)

  def __call__(
      self,
      x: Activations,
      bias: Bias,
      memory: KeysValues | None,
      memory_bias: MemoryBias | None,
      deterministic: bool,
  ) -> Activations:
    """Adds what the layer makes of a whole text."""
    y = self.self_attention(
        self.pre_self_attention_layer_norm(x), bias, deterministic
    )
    x = x + self.dropout(y, deterministic)
    return self._rest(x, memory, memory_bias, deterministic)

  def extend(
      self,
      x: Activations,
      buffer: KeysValues,
      index: Int[Array, " batch"],
      bias: Bias,
      memory: KeysValues | None,
      memory_bias: MemoryBias | None,
  ) -> tuple[Activations, KeysValues]:
    """Adds what the layer makes of a block, and writes the buffer."""
    y, buffer = self.self_attention.extend(
        self.pre_self_attention_layer_norm(x), buffer, index, bias
    )
    return self._rest(x + y, memory, memory_bias, True), buffer


class Decoder(nn.Module):
  """The stack that writes the text.

  An encoder-decoder shares its embedding with the encoder and gets it from
  outside; a decoder-only model owns it, as in T5X.
  """

  config: T5Config
  shared_embedder: layers.Embed | None = None

  def setup(self):
    """Declares submodules under T5X's names."""
    cfg = self.config
    if self.shared_embedder is None:
      self.token_embedder = embedder(cfg)
    self.relpos_bias = _biases(cfg, bidirectional=False)
    self.layers = [DecoderLayer(cfg) for _ in range(cfg.num_decoder_layers)]
    self.decoder_norm = _norm(cfg)
    self.dropout = _dropout(cfg)
    if cfg.shortlist:
      self.shortlist = layers.Shortlist(cfg.shortlist, cfg.vocab_size)
    elif not cfg.logits_via_embedding:
      # Float32 whatever the dtype, for stability.
      self.logits_dense = layers.Dense(
          cfg.vocab_size,
          ("embed", "vocab"),
          dtype="float32",
          transposed=cfg.packed,
      )

  @property
  def _embedder(self) -> layers.Embed:
    return self.shared_embedder or self.token_embedder

  def _logits(
      self, x: Activations, deterministic: bool
  ) -> Float[Array, "batch length vocab"]:
    cfg = self.config
    x = self.dropout(self.decoder_norm(x), deterministic)
    if cfg.shortlist:
      logits = self.shortlist(x)
    elif cfg.logits_via_embedding:
      logits = self._embedder.attend(x)
    else:
      logits = self.logits_dense(x)
    scale = jnp.sqrt(x.shape[-1]) if cfg.logits_via_embedding else 1
    return logits / scale

  def start(
      self,
      encoded: Float[Array, "batch inputs embed"],
      visible: Bool[Array, "batch inputs"],
  ) -> Context:
    """Projects the encoder output once for all decode steps."""
    return Context(
        memory=tuple(layer.start(encoded) for layer in self.layers),
        bias=biases.mask_to_bias(visible, self.config.dtype)[:, None, None],
    )

  def __call__(
      self,
      tokens: Int[Array, "batch length"],
      targets: Int[Array, "batch length"],
      context: Context = EMPTY_CONTEXT,
      deterministic: bool = True,
  ) -> Float[Array, "batch length vocab"]:
    """Logits of a whole text; positions whose target is padding are hidden."""
    length = tokens.shape[1]
    causal = jnp.tri(length, dtype=bool)
    mask = nn.make_attention_mask(targets > 0, targets > 0, dtype=bool) & causal
    bias = self.relpos_bias(jnp.arange(length)[None], length)
    bias = bias + biases.mask_to_bias(mask, bias.dtype)
    x = self.dropout(self._embedder(tokens), deterministic)
    memory = context.memory or (None,) * len(self.layers)
    for layer, keys_values in zip(self.layers, memory, strict=True):
      x = layer(x, bias, keys_values, context.bias, deterministic)
    return self._logits(x, deterministic)

  def extend(
      self,
      tokens: Int[Array, "batch block"],
      index: Int[Array, " batch"],
      cache: Cache,
      context: Context = EMPTY_CONTEXT,
      only: Int[Array, " batch"] | None = None,
  ) -> tuple[Float[Array, "batch places vocab"], Cache]:
    """Appends a block at each row's own index; see `types.Scorer.extend`."""
    length = cache[0].length
    positions = index[:, None] + jnp.arange(tokens.shape[1])
    visible = jnp.arange(length) <= positions[..., None]
    bias = self.relpos_bias(positions, length)
    bias = bias + biases.mask_to_bias(visible, bias.dtype)[:, None]
    x = self._embedder(tokens)
    memory = context.memory or (None,) * len(self.layers)
    buffers = []
    for layer, buffer, keys_values in zip(
        self.layers, cache, memory, strict=True
    ):
      x, buffer = layer.extend(
          x, buffer, index, bias, keys_values, context.bias
      )
      buffers.append(buffer)
    if only is not None:
      x = jnp.take_along_axis(x, only[:, None, None], axis=1)
    return self._logits(x, True), tuple(buffers)

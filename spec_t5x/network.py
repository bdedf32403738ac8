"""T5 1.0, 1.1 and FLAN in Flax Linen: encoder-decoder and decoder-only.

The parameter tree is T5X's (`t5x.examples.t5`, `t5x.examples.decoder_only`),
so T5X checkpoints load unchanged. Decoding differs from T5X's: blocks of any
length are appended at a per-row index (`extend`), and keys and values of the
encoder output are projected once per text (`start`).
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from flax import linen as nn
from flax.linen import partitioning as nn_partitioning
from jaxtyping import Array, Float, Int

from spec_t5x import stacks
from spec_t5x.cache import Cache, Context, init_cache
from spec_t5x.config import T5Config
from spec_t5x.types import Params

__all__ = ["DecoderOnly", "T5Config", "T5Scorer", "Transformer", "build"]


class Transformer(nn.Module):
  """Encoder-decoder T5: `t5x.examples.t5.network.Transformer`."""

  config: T5Config

  def setup(self):
    """Declares submodules under T5X's names."""
    self.token_embedder = stacks.embedder(self.config)
    self.encoder = stacks.Encoder(self.config)
    self.decoder = stacks.Decoder(self.config, self.token_embedder)

  def encode(
      self,
      encoder_input_tokens: Int[Array, "batch inputs"],
      deterministic: bool = True,
  ) -> Float[Array, "batch inputs embed"]:
    """Encodes the inputs; id 0 is padding."""
    embedded = self.token_embedder(encoder_input_tokens)
    return self.encoder(embedded, encoder_input_tokens > 0, deterministic)

  def start(self, encoder_input_tokens: Int[Array, "batch inputs"]) -> Context:
    """Encodes and projects the inputs, once per text."""
    encoded = self.encode(encoder_input_tokens)
    return self.decoder.start(encoded, encoder_input_tokens > 0)

  def extend(self, tokens, index, cache, context, only=None):
    """Appends a block; see `Decoder.extend`."""
    return self.decoder.extend(tokens, index, cache, context, only)

  def __call__(
      self,
      encoder_input_tokens: Int[Array, "batch inputs"],
      decoder_input_tokens: Int[Array, "batch length"],
      decoder_target_tokens: Int[Array, "batch length"],
      *,
      enable_dropout: bool = False,
  ) -> Float[Array, "batch length vocab"]:
    """Teacher-forced logits, float32."""
    deterministic = not enable_dropout
    encoded = self.encode(encoder_input_tokens, deterministic)
    context = self.decoder.start(encoded, encoder_input_tokens > 0)
    return self.decoder(
        decoder_input_tokens, decoder_target_tokens, context, deterministic
    )


class DecoderOnly(nn.Module):
  """Language model: `t5x.examples.decoder_only.network`, causal."""

  config: T5Config

  def setup(self):
    """Declares the decoder under T5X's name."""
    self.decoder = stacks.Decoder(self.config)

  def start(self, inputs: Int[Array, "batch inputs"]) -> Context:
    """There is nothing to encode."""
    del inputs
    return stacks.EMPTY_CONTEXT

  def extend(self, tokens, index, cache, context, only=None):
    """Appends a block; see `Decoder.extend`."""
    return self.decoder.extend(tokens, index, cache, context, only)

  def __call__(
      self,
      decoder_input_tokens: Int[Array, "batch length"],
      decoder_target_tokens: Int[Array, "batch length"],
      *,
      enable_dropout: bool = False,
  ) -> Float[Array, "batch length vocab"]:
    """Teacher-forced logits, float32."""
    return self.decoder(
        decoder_input_tokens,
        decoder_target_tokens,
        deterministic=not enable_dropout,
    )


@functools.cache
def build(config: T5Config) -> Transformer | DecoderOnly:
  """Returns the module that a configuration describes."""
  return (DecoderOnly if config.decoder_only else Transformer)(config)


@dataclasses.dataclass(frozen=True)
class T5Scorer:
  """A T5 as the decoding loop sees it; implements `types.Scorer`.

  Attributes:
    config: the model's configuration.
    axis_rules: mesh axis of each logical axis, see `partitioning`; empty on a
      single device.
  """

  config: T5Config
  axis_rules: tuple[tuple[str, str | None], ...] = ()

  @property
  def vocab_size(self) -> int:
    """Number of logits per position, padded ids included."""
    return self.config.vocab_size

  def start(
      self, params: Params, inputs: Int[Array, "batch inputs"]
  ) -> Context:
    """Encodes the inputs and projects them to keys and values, once."""
    return self._apply("start", params, inputs)

  def init_cache(self, batch: int, length: int) -> Cache:
    """Returns buffers for `length` positions of `batch` rows."""
    cfg = self.config
    with nn_partitioning.axis_rules(self.axis_rules):
      return init_cache(
          cfg.num_decoder_layers,
          batch,
          length,
          cfg.num_heads,
          cfg.head_dim,
          cfg.dtype,
      )

  def extend(
      self,
      params: Params,
      context: Context,
      cache: Cache,
      tokens: Int[Array, "batch block"],
      index: Int[Array, " batch"],
      only: Int[Array, " batch"] | None = None,
  ) -> tuple[Float[Array, "batch places vocab"], Cache]:
    """Appends a block at each row's own index; see `types.Scorer.extend`."""
    logits, cache = self._apply(
        "extend", params, tokens, index, cache, context, only
    )
    with nn_partitioning.axis_rules(self.axis_rules):
      constrain = nn_partitioning.with_sharding_constraint
      # Each device projects to its part of the vocabulary. They exchange that
      # once: a law in parts would take a sum over devices at every step of
      # sampling, and split the laws of the draft too, which they meet.
      logits = constrain(logits, ("batch", "length", "vocab"))
      logits = constrain(logits, ("batch", "length", None))
    return logits, cache

  def _apply(self, method: str | Callable[..., Any], params: Params, *args):
    with nn_partitioning.axis_rules(self.axis_rules):
      return build(self.config).apply({"params": params}, *args, method=method)

"""Decoding as T5X asks for it: its networks, its outputs, this package's loop.

Nothing here imports T5X; `t5x_plugin` does.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import traverse_util
from flax.linen import partitioning as nn_partitioning
from jaxtyping import Array, Float, Int

from spec_t5x import decoding, inputs
from spec_t5x.checkpoints import layout
from spec_t5x.config import T5Config
from spec_t5x.decoding_types import Decoded, Models, Rows, Settings, Weights
from spec_t5x.law import Sampling
from spec_t5x.network import T5Scorer
from spec_t5x.t5x_options import DecodeOptions, is_traced
from spec_t5x.types import PAD_ID, Draft, PRNGKey


def model_config(module: Any, name: str) -> T5Config:
  """Reads the configuration off a network of T5X.

  Args:
    module: a `t5x.examples.t5` or `t5x.examples.decoder_only` network.
    name: of the argument that it came by.

  Raises:
    ValueError: the network is another one.
  """
  config = getattr(module, "config", None)
  fields = {
      "num_encoder_layers": getattr(config, "num_encoder_layers", 0),
      "num_decoder_layers": getattr(
          config, "num_decoder_layers", getattr(config, "num_layers", None)
      ),
      "float32_attention_logits": getattr(
          config, "float32_attention_logits", False
      ),
  }
  for field in (
      "vocab_size emb_dim num_heads head_dim mlp_dim mlp_activations"
      " logits_via_embedding dtype"
  ).split():
    fields[field] = getattr(config, field, None)
  missing = [field for field, value in fields.items() if value is None]
  if missing or getattr(module, "scan_layers", False):
    what = "it scans its layers" if not missing else f"lacks {missing}"
    raise ValueError(
        f"`{name}` must be a network of `t5x.examples.t5` or"
        f" `t5x.examples.decoder_only`. Got {type(module).__name__}: {what}."
    )
  return T5Config(**fields)


def check_params(params: Mapping[str, Any], config: T5Config, name: str):
  """Raises ValueError unless parameters are those of `examples.t5`."""
  specs = {
      "/".join(path): layout.TensorSpec(
          tuple(value.shape), jnp.dtype(value.dtype).name
      )
      for path, value in traverse_util.flatten_dict(dict(params)).items()
  }
  layout.check_specs(specs, layout.parameter_shapes(config), f"`{name}`")


def scorer(config: T5Config) -> T5Scorer:
  """Returns a model under the axis rules that T5X's partitioner has set."""
  rules = tuple(tuple(rule) for rule in nn_partitioning.get_axis_rules())
  return T5Scorer(config, rules)


def check_pair(target: T5Config, draft: T5Config) -> None:
  """Raises ValueError unless one can draft for the other."""
  if target.decoder_only != draft.decoder_only:
    raise ValueError(
        "`draft_module` must be decoder-only iff `module` is. Got"
        f" {draft.num_encoder_layers} and {target.num_encoder_layers} encoder"
        " layers."
    )
  inputs.check_vocab_size("draft_module", draft.vocab_size, target.vocab_size)


class Samples(NamedTuple):
  """Texts as T5X's decode functions return them, by rising score.

  Attributes:
    tokens: without BOS; EOS kept, PAD behind it.
    scores: log-probability of each text, nats.
    aux: statistics [batch, num_decodes, ...]; see `_aux`.
  """

  tokens: Int[Array, "batch num_decodes length"]
  scores: Float[Array, "batch num_decodes"]
  aux: dict[str, Array]


def sample(
    target: T5Scorer,
    draft: Draft | None,
    weights: Weights,
    options: DecodeOptions,
    encoder_tokens: Int[Array, "batch inputs"],
    prompts: Int[Array, "batch length"],
    num_decodes: int,
    forced: bool,
) -> Samples:
  """Decodes a batch in T5X's terms.

  Args:
    target: the model whose law is sampled.
    draft: source of proposals, None for plain decoding.
    weights: parameters of both.
    options: how to decode.
    encoder_tokens: inputs of the encoder; without one, of width 0.
    prompts: T5X's decoder inputs: BOS, then the tokens that a text begins
      with. A prompt ends at its first PAD.
    num_decodes: independent texts per input.
    forced: whether there are prompts at all.

  Raises:
    ValueError: an option does not fit the batch.
  """
  batch, length = prompts.shape
  inputs.check_settings(0, 1.0, False, num_decodes, 1)
  width = length - 1 if forced else 0
  known = jnp.cumprod(prompts[:, 1 : width + 1] != PAD_ID, axis=1)
  prompt = prompts[:, 1 : width + 1] * known
  settings = Settings(
      max_length=length,
      sampling=Sampling(
          greedy=options.greedy,
          num_ids=target.vocab_size,
          top_k=0 if options.greedy else int(options.topk),
          top_p=0.0 if options.greedy or options.topp == 1 else options.topp,
          logit_callback=options.logit_callback,
      ),
      num_decodes=num_decodes,
      lenience=options.lenience,
      block_verification=options.block_verification,
      rescale_log_probs=options.rescale_log_probs,
      eos_id=options.eos_id,
  )
  repeat = lambda x: jnp.repeat(x, num_decodes, axis=0)
  rows = Rows(
      prompt=repeat(prompt.astype("int32")),
      limit=repeat(_limit(options, prompt, length)),
      temperature=repeat(_per_input("temperature", options.temperature, batch)),
      keys=_row_keys(options.decode_rng, batch * num_decodes),
  )
  decoded = decoding.decode(
      Models(target, draft), settings, weights, encoder_tokens, rows
  )
  return _samples(decoded, batch, num_decodes, options.block_verification)


def _per_input(name: str, value: Any, batch: int) -> Array:
  value = jnp.asarray(value)
  if value.shape not in ((), (batch,)):
    raise ValueError(
        f"`{name}` must be one number or one per input, {batch}."
        f" Got shape {value.shape}."
    )
  return jnp.broadcast_to(value, (batch,))


def _limit(options: DecodeOptions, prompt, length: int) -> Int[Array, " batch"]:
  """Most tokens of each text, prompt included."""
  batch = prompt.shape[0]
  steps = options.max_decode_steps
  if steps is None:
    return jnp.full(batch, length, "int32")
  if not is_traced(steps) and not (0 < np.max(steps) <= length):
    raise ValueError(
        "`max_decode_steps` must be between 1 and the length of the targets"
        f" feature, {length}. Got {steps}."
    )
  if options.max_decode_steps_hard_limit:
    steps = jnp.minimum(steps, options.max_decode_steps_hard_limit)
  steps = _per_input("max_decode_steps", steps, batch)
  known = jnp.sum(prompt != PAD_ID, axis=1)
  return jnp.minimum(known + steps, length).astype("int32")


def _row_keys(rng: PRNGKey | None, rows: int):
  """One key per row, of a generator that keeps rows apart under `vmap`.

  T5X sets JAX's default to 'rbg', which does not.
  """
  rng = jax.random.PRNGKey(0) if rng is None else rng
  words = jax.random.bits(rng, (2,), "uint32")
  key = jax.random.wrap_key_data(words, impl="threefry2x32")
  fold = lambda row: jax.random.fold_in(key, row)
  return jax.vmap(fold)(jnp.arange(rows))


def _samples(
    decoded: Decoded, batch: int, num_decodes: int, block_verification: bool
) -> Samples:
  """Groups rows by input and sorts them by score."""
  group = lambda x: x.reshape(batch, num_decodes, *x.shape[1:])
  scores = group(decoded.token_log_probs.sum(axis=1))
  order = jnp.argsort(scores, axis=1)
  sort = jax.vmap(lambda x, order: x[order])
  aux = jax.tree.map(
      lambda x: sort(group(x), order), _aux(decoded, block_verification)
  )
  return Samples(
      tokens=sort(group(decoded.tokens), order),
      scores=sort(scores, order),
      aux=aux,
  )


def _aux(decoded: Decoded, block_verification: bool) -> dict[str, Array]:
  """Statistics of each row; counts, to be pooled, and two ratios of them."""
  counts = decoded.counts
  tested, accepted = counts.tested.sum(axis=1), counts.accepted.sum(axis=1)
  # See `DecodeStatistics.alpha_hat`.
  estimates = counts.overlap.sum(axis=1) if block_verification else accepted
  return {
      # NaN if no drafted token was tested.
      "alpha": estimates / tested,
      "block_efficiency": counts.emitted / counts.iterations,
      "iterations": counts.iterations,
      "emitted": counts.emitted,
      "tested": tested,
      "accepted": accepted,
      "accept_counts": counts.accept_counts,
      # Without it, NaN logits would look like text.
      "finite": decoded.finite,
  }

"""A decode function for T5X's own model classes.

Nothing here imports T5X.
"""

import functools

import jax
import jax.numpy as jnp
from flax.core import unfreeze

from spec_t5x import t5x_decoding
from spec_t5x.decoding_types import Weights
from spec_t5x.t5x_model import LooseDraft, place_loose
from spec_t5x.t5x_options import DecodeOptions
from spec_t5x.types import PRNGKey


def speculative_decode_fn(
    inputs: jax.Array,
    cache,
    tokens_to_logits: functools.partial,
    eos_id: int,
    decode_rng: PRNGKey | None = None,
    num_decodes: int = 1,
    cache_offset: int = 0,
    initial_index: jax.Array | None = None,
    *,
    draft: LooseDraft | None = None,
    options: DecodeOptions | None = None,
    **decoder_params,
) -> tuple[jax.Array, jax.Array]:
  """A decode function for T5X's own model classes, for drafts without weights.

  The contract of a decode function has no place for a second model's
  parameters nor for statistics; `SpeculativeModel` has. The network and its
  parameters are those that `tokens_to_logits` is bound to.

  Args:
    inputs: prompts [batch, length], BOS first.
    cache: unused; the loop has caches of its own.
    tokens_to_logits: as T5X's models make it.
    eos_id: ends a text.
    decode_rng: of all random numbers.
    num_decodes: independent decodes of each input.
    cache_offset: unused.
    initial_index: unused; prompts tell.
    draft: a draft without a checkpoint, see `SpeculativeModel`; None decodes
      plainly.
    options: how to decode; by default T5X's defaults.
    **decoder_params: fields of `DecodeOptions`.

  Returns:
    Tokens [batch, num_decodes, length] and scores, by rising score.

  Raises:
    ValueError: `tokens_to_logits` is not a stock model's, the network is
      another, or an option is out of range.
  """
  del cache, cache_offset, initial_index
  model = getattr(getattr(tokens_to_logits, "func", None), "__self__", None)
  if not hasattr(model, "module"):
    raise ValueError(
        "`tokens_to_logits` must be the one that T5X's models make, not"
        f" wrapped. Got {tokens_to_logits!r}. `SpeculativeModel` does not need"
        " it."
    )
  if getattr(model, "_inputs_bidirectional_attention", False):
    raise ValueError(
        "`inputs_bidirectional_attention` must be False: the speculative loop"
        " reads prompts causally."
    )
  config = t5x_decoding.model_config(model.module, "module")
  bound = tokens_to_logits.keywords
  params = unfreeze(bound["params"])
  t5x_decoding.check_params(params, config, "module")
  encoder_tokens = jnp.zeros((len(inputs), 0), "int32")
  if not config.decoder_only:
    # T5X has expanded them to one row per decode.
    encoder_tokens = bound["raw_inputs"][::num_decodes]
  options = (options or DecodeOptions()).updated(
      {"eos_id": eos_id, "decode_rng": decode_rng, **decoder_params}
  )
  placed, draft_params = place_loose(draft, options.gamma)
  samples = t5x_decoding.sample(
      t5x_decoding.scorer(config),
      placed,
      Weights(params, draft_params),
      options,
      encoder_tokens,
      inputs,
      num_decodes,
      # Whether there are prompts is known only when the program runs.
      forced=True,
  )
  return samples.tokens, samples.scores

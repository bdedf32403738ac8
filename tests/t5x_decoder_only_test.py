"""Tests of decoder-only pairs against T5X; skipped where it is not."""

import functools

import jax
import numpy as np
import pytest
from jax import numpy as jnp

pytest.importorskip("t5x")

import t5x_tiny as tiny
from t5x import decoding, models

from spec_t5x import t5x_plugin
from spec_t5x.t5x_model import join_params
from spec_t5x.t5x_options import DecodeOptions

# Prompts of 4, 1 and 7 tokens, and the targets to be ignored behind them.
TOKENS = np.random.default_rng(0).integers(3, 259, (3, 10))
CAUSAL = np.arange(10) < np.asarray([[5], [2], [8]])
BATCH = {
    "decoder_input_tokens": jnp.asarray(TOKENS * (np.arange(10) > 0), "int32"),
    "decoder_causal_attention": jnp.asarray(CAUSAL, "int32"),
}


@pytest.fixture(scope="module")
def stock():
  """T5X's model, and its parameters."""
  model = models.DecoderOnlyModel(
      tiny.causal(),
      tiny.VOCABULARY,
      optimizer_def=None,
      decode_fn=functools.partial(decoding.temperature_sample, temperature=0.0),
  )
  return model, tiny.params_of(model)


def predict(model, params, **options):
  step = functools.partial(model.predict_batch_with_aux, **options)
  return jax.device_get(jax.jit(step)(params, BATCH))


def speculative(**kwargs):
  return t5x_plugin.SpeculativeDecoderOnlyModel(
      tiny.causal(),
      tiny.VOCABULARY,
      options=DecodeOptions(gamma=3, temperature=0.0, topk=0),
      **kwargs,
  )


@pytest.mark.parametrize(
    "options", [{}, {"num_decodes": 2, "return_all_decodes": True}], ids=str
)
def test_greedy_tokens_are_those_of_t5x(stock, options):
  model, params = stock
  theirs, _ = predict(model, params, **options)
  pair = join_params(params, tiny.perturbed(params))
  ours, aux = predict(speculative(draft_module=tiny.causal()), pair, **options)
  np.testing.assert_array_equal(ours, theirs)
  assert aux["accepted"].sum() > 0


def test_decode_fn_for_the_stock_class(stock):
  model, params = stock
  decode_fn = functools.partial(
      t5x_plugin.speculative_decode_fn, draft="lookup"
  )
  ours = models.DecoderOnlyModel(
      tiny.causal(), tiny.VOCABULARY, None, decode_fn=decode_fn
  )
  np.testing.assert_array_equal(
      predict(ours, params)[0], predict(model, params)[0]
  )


def test_prefix_language_models_are_not_supported():
  with pytest.raises(ValueError, match="`inputs_bidirectional_attention`"):
    speculative(inputs_bidirectional_attention=True)
  stock = models.DecoderOnlyModel(
      tiny.causal(),
      tiny.VOCABULARY,
      None,
      decode_fn=t5x_plugin.speculative_decode_fn,
      inputs_bidirectional_attention=True,
  )
  bound = functools.partial(stock._compute_logits_from_slice)
  with pytest.raises(ValueError, match="`inputs_bidirectional_attention`"):
    t5x_plugin.speculative_decode_fn(jnp.zeros((1, 4)), {}, bound, eos_id=1)


def test_prompts_are_needed():
  with pytest.raises(ValueError, match="feature `decoder_causal_attention`"):
    speculative().predict_batch_with_aux(
        {}, {"decoder_input_tokens": BATCH["decoder_input_tokens"]}
    )

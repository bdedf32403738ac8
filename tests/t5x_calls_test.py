"""Tests of how T5X calls the plug-in: keys, defaults, uploads."""

import jax
import numpy as np
import pytest

pytest.importorskip("t5x")

import t5x_tiny as tiny
from t5x import models

from spec_t5x import t5x_plugin
from spec_t5x.t5x_model import join_params, split_params
from spec_t5x.t5x_options import DecodeOptions


def make(default_decoder_params=None, **options):
  return t5x_plugin.SpeculativeModel(
      tiny.encoder_decoder(),
      tiny.VOCABULARY,
      tiny.VOCABULARY,
      draft_module=tiny.encoder_decoder(),
      options=DecodeOptions(**{"gamma": 3, "topk": 0} | options),
      default_decoder_params=default_decoder_params,
  )


@pytest.fixture(scope="module")
def pair():
  params = tiny.params_of(tiny.stock())
  return join_params(params, tiny.perturbed(params))


@pytest.fixture(scope="module")
def sample(pair):
  """Draws texts with a key that T5X passes in one way or the other."""
  step = jax.jit(make().predict_batch_with_aux)
  return lambda **keys: np.asarray(step(pair, tiny.batch(), **keys)[0])


def test_decode_rng_is_another_name_of_rng(sample):
  by_rng = sample(rng=jax.random.PRNGKey(5))
  key = {"decode_rng": jax.random.PRNGKey(5)}
  np.testing.assert_array_equal(sample(decoder_params=key), by_rng)
  # Control: another key draws other texts.
  assert (sample(rng=jax.random.PRNGKey(6)) != by_rng).any()


def test_defaults_of_the_model_are_those_of_its_calls(pair):
  defaults = models.DecoderParams(num_decodes=3, return_all_decodes=True)
  model = make(defaults, temperature=0.0)
  tokens, aux = jax.jit(model.predict_batch_with_aux)(pair, tiny.batch())
  assert tokens.shape == (4, 3, 10)
  assert aux["accept_counts"].shape == (4, 3, 4)


@pytest.mark.parametrize("num_decodes", [0, -1, 2.0])
def test_bad_numbers_of_decodes(pair, num_decodes):
  with pytest.raises(ValueError, match="`num_decodes` must be an integer"):
    make().predict_batch_with_aux(pair, tiny.batch(), num_decodes=num_decodes)


def test_no_batch_uploads_parameters(pair, tmp_path):
  """Both models' parameters stay where the partitioner has put them."""
  paths = (
      tiny.save(tmp_path / name, params, orbax=False)
      for name, params in zip(
          ("target", "draft"), split_params(pair), strict=True
      )
  )
  params = tiny.restore(make(), *paths).params
  step = jax.jit(make().predict_batch)
  batch = jax.device_put(tiny.batch())
  jax.block_until_ready(step(params, batch))
  with jax.transfer_guard_host_to_device("disallow"):
    jax.block_until_ready(step(params, batch))
    # Control: what T5X restores of a legacy fallback, for one, is NumPy's.
    with pytest.raises(Exception, match="[Dd]isallowed host-to-device"):
      step(jax.device_get(params), batch)

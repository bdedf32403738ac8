"""Logits and greedy decodes equal those of Hugging Face transformers.

The default suite compares with what transformers gave once
(`goldens/make_hugging_face.py`), so it needs no torch; where torch and
transformers are installed, the goldens themselves are checked.
"""

import dataclasses
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import parity_models
import pytest

import spec_t5x
from spec_t5x import network

GOLDENS = pathlib.Path(__file__).parent / "goldens"
NAMES = list(parity_models.CONFIGS)
# Most a logit may differ. Their largest absolute values are 5 to 60.
TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def goldens():
  with np.load(GOLDENS / "hugging_face.npz") as arrays:
    return dict(arrays)


def model(name):
  return spec_t5x.Model(
      name, parity_models.CONFIGS[name], parity_models.params(name)
  )


@pytest.mark.parametrize("name", NAMES)
def test_logits_equal(name, goldens):
  targets = jnp.asarray(parity_models.targets(), "int32")
  logits = network.build(parity_models.CONFIGS[name]).apply(
      {"params": jax.tree.map(jnp.asarray, parity_models.params(name))},
      jnp.asarray(parity_models.inputs()[: parity_models.NUM_SCORED]),
      jnp.pad(targets, ((0, 0), (1, 0)))[:, :-1],
      targets,
  )
  expected = goldens[f"{name}_logits"]
  assert np.abs(expected).max() > 1
  np.testing.assert_allclose(logits, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", NAMES)
def test_greedy_decodes_equal(name, goldens):
  decoder = spec_t5x.Decoder(
      model(name), max_decode_steps=parity_models.MAX_DECODE_STEPS
  )
  tokens = decoder(parity_models.inputs()).tokens
  expected = goldens[f"{name}_tokens"]
  np.testing.assert_array_equal(tokens, expected)
  # The texts are not all one, and some end early.
  assert len(np.unique(expected, axis=0)) > 20
  assert (expected == 0).any()


@pytest.mark.parametrize("name", NAMES)
def test_speculative_greedy_decodes_equal(name, goldens):
  target = model(name)
  draft = dataclasses.replace(model(name), name="draft")
  draft = dataclasses.replace(
      draft,
      params={
          **draft.params,
          "token_embedder": {
              "embedding": (
                  draft.params["token_embedder"]["embedding"]
                  + 0.1 * np.random.default_rng(0).standard_normal((97, 16))
              )
          },
      },
  )
  decoder = spec_t5x.Decoder(
      target,
      draft,
      gamma=3,
      max_decode_steps=parity_models.MAX_DECODE_STEPS,
  )
  result = decoder(parity_models.inputs())
  np.testing.assert_array_equal(result.tokens, goldens[f"{name}_tokens"])
  assert 0 < result.statistics.alpha_hat < 1


def test_a_changed_weight_is_noticed(goldens):
  """The control: parity at 1e-4 is no matter of course."""
  name = NAMES[0]
  changed = parity_models.params(name)
  bias = changed["decoder"]["relpos_bias"]["rel_embedding"]
  bias[:, 3] += 0.01
  targets = jnp.asarray(parity_models.targets(), "int32")
  logits = network.build(parity_models.CONFIGS[name]).apply(
      {"params": jax.tree.map(jnp.asarray, changed)},
      jnp.asarray(parity_models.inputs()[: parity_models.NUM_SCORED]),
      jnp.pad(targets, ((0, 0), (1, 0)))[:, :-1],
      targets,
  )
  assert np.abs(logits - goldens[f"{name}_logits"]).max() > TOLERANCE


@pytest.mark.parametrize("name", NAMES)
def test_goldens_are_what_transformers_gives(name, goldens, monkeypatch):
  pytest.importorskip("torch")
  pytest.importorskip("transformers")
  monkeypatch.setattr(sys, "path", [str(GOLDENS), *sys.path])
  import make_hugging_face

  logits, tokens = make_hugging_face.hugging_face_outputs(name)
  np.testing.assert_allclose(logits, goldens[f"{name}_logits"], atol=1e-5)
  np.testing.assert_array_equal(tokens, goldens[f"{name}_tokens"])

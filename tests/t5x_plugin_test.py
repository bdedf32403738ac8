"""Tests of the T5X plug-in against T5X itself; skipped where it is not."""

import functools
import itertools

import jax
import numpy as np
import pytest
import scipy.stats
from jax import numpy as jnp

pytest.importorskip("t5x")

import t5x_tiny as tiny
from t5x import decoding
from t5x.examples.scalable_t5 import network as scalable

from spec_t5x import t5x_plugin
from spec_t5x.t5x_model import join_params, split_params
from spec_t5x.t5x_options import DecodeOptions

GREEDY = dict(temperature=0.0, topk=0)


def speculative(module=None, draft_module=None, draft=None, **options):
  options = {"gamma": 3} | GREEDY | options
  if draft is None:
    draft_module = draft_module or tiny.encoder_decoder()
  return t5x_plugin.SpeculativeModel(
      module or tiny.encoder_decoder(),
      tiny.VOCABULARY,
      tiny.VOCABULARY,
      draft_module=draft_module,
      draft=draft,
      options=DecodeOptions(**options),
  )


@pytest.fixture(scope="module")
def target():
  return tiny.params_of(tiny.stock())


@pytest.fixture(scope="module")
def pair(target):
  return join_params(target, tiny.perturbed(target))


def predict(model, params, **options):
  """Tokens and aux of `tiny.batch()`."""
  step = functools.partial(model.predict_batch_with_aux, **options)
  return jax.device_get(jax.jit(step)(params, tiny.batch()))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prompt_with_targets": True},
        {
            "prompt_with_targets": True,
            "num_decodes": 2,
            "return_all_decodes": True,
        },
    ],
    ids=lambda options: "-".join(options) or "default",
)
def test_greedy_tokens_are_those_of_t5x(target, pair, options):
  theirs, their_aux = predict(tiny.stock(), target, **options)
  ours, aux = predict(speculative(), pair, **options)
  np.testing.assert_array_equal(ours, theirs)
  assert aux["scores"].shape == their_aux["scores"].shape
  # A draft that never agrees would be equal, too.
  assert aux["accepted"].sum() > 0
  assert aux["finite"].all()


@pytest.mark.parametrize(
    "params",
    [
        {"max_decode_steps": 4, "rescale_log_probs": False},
        {"rescale_log_probs": False, "eos_id": 372},
    ],
    ids=str,
)
def test_decoder_params_do_what_they_do_in_t5x(target, pair, params):
  options = dict(prompt_with_targets=True)
  theirs, their_aux = predict(
      tiny.stock(), target, decoder_params=dict(params), **options
  )
  ours, aux = predict(
      speculative(), pair, decoder_params=dict(params), **options
  )
  np.testing.assert_array_equal(ours, theirs)
  np.testing.assert_allclose(aux["scores"], their_aux["scores"], atol=1e-4)


def test_predict_batch_and_scores(target, pair):
  model = speculative()
  tokens = jax.jit(model.predict_batch)(pair, tiny.batch())
  np.testing.assert_array_equal(tokens, predict(model, pair)[0])
  np.testing.assert_array_equal(
      jax.jit(model.score_batch)(pair, tiny.batch()),
      jax.jit(tiny.stock().score_batch)(target, tiny.batch()),
  )


def test_aux_counts_add_up(pair):
  tokens, aux = predict(speculative(), pair)
  np.testing.assert_array_equal(aux["accept_counts"].shape, (4, 4))
  np.testing.assert_array_equal(
      aux["accept_counts"].sum(axis=1), aux["iterations"]
  )
  np.testing.assert_array_equal(
      aux["accept_counts"] @ np.arange(4), aux["accepted"]
  )
  np.testing.assert_allclose(
      aux["alpha"], aux["accepted"] / aux["tested"], rtol=1e-6
  )
  assert (aux["emitted"] >= (tokens != 0).sum(axis=1)).all()
  assert (aux["iterations"] < aux["emitted"]).any()


def law_of_two_tokens(params, temperature, topk):
  """Exact law of the first two tokens, from T5X's teacher-forced logits."""
  inputs = tiny.batch()["encoder_input_tokens"][:1]
  compute_logits = jax.jit(tiny.stock()._compute_logits)

  def law(prefix):
    tokens = jnp.asarray([[0, *prefix, *[0] * (1 - len(prefix))]], "int32")
    features = {
        "encoder_input_tokens": inputs,
        "decoder_input_tokens": tokens,
        "decoder_target_tokens": jnp.ones_like(tokens),
    }
    logits = compute_logits(params, features)[0, len(prefix)]
    kept = np.argsort(np.asarray(logits))[-topk:]
    probs = scipy.special.softmax(np.asarray(logits, float)[kept] / temperature)
    return dict(zip(kept.tolist(), probs, strict=True))

  return {
      (a, b): p * q for a, p in law(()).items() for b, q in law((a,)).items()
  }


@pytest.mark.parametrize("gamma", [0, 3])
def test_sampled_law_is_the_targets(target, pair, gamma):
  # False alarms: 1e-4 each. Control: the draft's law must be rejected.
  sampling = dict(temperature=0.8, topk=3)
  batch = {
      "encoder_input_tokens": tiny.batch()["encoder_input_tokens"][:1],
      "decoder_input_tokens": jnp.zeros((1, 2), "int32"),
  }
  step = functools.partial(
      speculative(gamma=gamma, **sampling).predict_batch_with_aux,
      num_decodes=3000,
      return_all_decodes=True,
      rng=jax.random.PRNGKey(3),
  )
  tokens, _ = jax.jit(step)(pair, batch)
  found = [tuple(row) for row in np.asarray(tokens[0]).tolist()]

  def p_value(params):
    law = law_of_two_tokens(params, **sampling)
    if not set(found) <= set(law):
      return 0.0
    expected = np.asarray(list(law.values())) * len(found)
    counts = [found.count(outcome) for outcome in law]
    return scipy.stats.chisquare(counts, expected, sum_check=False).pvalue

  assert p_value(target) > 1e-4
  assert p_value(tiny.perturbed(target)) < 1e-4


def test_draft_without_parameters_needs_no_second_checkpoint(target, tmp_path):
  model = speculative(draft="lookup:2")
  path = tiny.save(tmp_path / "target", target, orbax=True)
  params = tiny.restore(model, path, None).params
  tokens, aux = predict(model, params)
  np.testing.assert_array_equal(tokens, predict(tiny.stock(), target)[0])
  assert aux["tested"].sum() > 0


def test_beam_search_without_a_draft_is_t5xs(target):
  model = t5x_plugin.SpeculativeModel(
      tiny.encoder_decoder(),
      tiny.VOCABULARY,
      tiny.VOCABULARY,
      decode_fn=decoding.beam_search,
  )
  theirs = predict(tiny.stock(decode_fn=decoding.beam_search), target)
  ours = predict(model, target)
  jax.tree.map(np.testing.assert_array_equal, ours, theirs)


def test_decode_fn_for_the_stock_class(target):
  options = dict(prompt_with_targets=True, num_decodes=2)
  decode_fn = functools.partial(
      t5x_plugin.speculative_decode_fn,
      draft="lookup",
      options=DecodeOptions(**GREEDY),
  )
  ours, _ = predict(tiny.stock(decode_fn=decode_fn), target, **options)
  theirs, _ = predict(tiny.stock(), target, **options)
  np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("target_is_orbax", "draft_is_orbax"),
    itertools.product([False, True], repeat=2),
)
def test_two_checkpoints_of_any_format(
    tmp_path, target, pair, target_is_orbax, draft_is_orbax
):
  params, draft = split_params(pair)
  paths = (
      tiny.save(tmp_path / "target", params, target_is_orbax),
      tiny.save(tmp_path / "draft", draft, draft_is_orbax),
  )
  state = tiny.restore(speculative(), *paths)
  assert state.step == 3
  jax.tree.map(np.testing.assert_array_equal, state.params, pair)
  # Cast and on devices: host arrays would be uploaded again for every batch.
  state = tiny.restore(speculative(), *paths, dtype="bfloat16")
  for leaf in jax.tree.leaves(state.params):
    assert leaf.dtype == jnp.bfloat16
    assert leaf.sharding.mesh.axis_names == ("data", "model")


def make(**kwargs):
  return t5x_plugin.SpeculativeModel(
      **{
          "module": tiny.encoder_decoder(),
          "input_vocabulary": tiny.VOCABULARY,
          "output_vocabulary": tiny.VOCABULARY,
      }
      | kwargs
  )


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        (
            {"decode_fn": decoding.beam_search},
            NotImplementedError,
            "`decode_fn` must be None with .* Got `beam_search`",
        ),
        ({"draft": "lookup"}, ValueError, "must not both be given"),
        (
            {"draft_module": None, "draft": "path/to/model"},
            ValueError,
            "a model is a `draft_module`. Got 'path/to/model'",
        ),
        (
            {"module": tiny.causal()},
            ValueError,
            "`draft_module` must be decoder-only iff",
        ),
        (
            {"draft_module": tiny.encoder_decoder(vocab_size=1024)},
            ValueError,
            "`draft_module` must have the target's vocabulary, 384 ids",
        ),
        (
            {"module": scalable.Transformer(scalable.T5Config(vocab_size=384))},
            ValueError,
            "`module` must be a network of `t5x.examples.t5`",
        ),
    ],
)
def test_models_that_do_not_fit(kwargs, error, message):
  with pytest.raises(error, match=message):
    make(**{"draft_module": tiny.encoder_decoder()} | kwargs)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"state_callback_fn": print}, "`state_callback_fn` is not supported"),
        ({"logit_callback_fn": print}, "use `logit_callback`"),
        ({"brevity": 1}, "`brevity` is not supported: known are gamma,"),
        ({"topk": 2, "topp": 0.5}, "must not be used together"),
        ({"max_decode_steps": 15}, "length of the targets feature, 10. Got 15"),
        ({"temperature": jnp.zeros(3)}, "one per input, 4"),
        ({"decode_rng": jax.random.PRNGKey(0)}, "must not both be given"),
    ],
)
def test_options_that_are_not_supported(pair, params, message):
  with pytest.raises(ValueError, match=message):
    speculative().predict_batch_with_aux(
        pair, tiny.batch(), rng=jax.random.PRNGKey(1), decoder_params=params
    )


def test_parameters_of_the_draft_must_be_there(target):
  with pytest.raises(ValueError, match="draft's parameters under 'draft'"):
    speculative().predict_batch_with_aux(target, tiny.batch())


def test_path_of_the_draft_is_given_iff_there_is_one():
  with pytest.raises(ValueError, match="draft_path` must be given iff"):
    tiny.restore(speculative(), "/none/checkpoint_3", None)
  with pytest.raises(ValueError, match="draft_path` must be given iff"):
    tiny.restore(tiny.stock(), "/none/checkpoint_3", "/none/checkpoint_3")


def test_decode_fn_needs_the_models_own_function():
  with pytest.raises(ValueError, match="`tokens_to_logits` must be the one"):
    t5x_plugin.speculative_decode_fn(
        jnp.zeros((1, 4), "int32"), {}, lambda state: None, eos_id=1
    )

"""Log-probabilities that the loop returns, and the fate of bad logits."""

import jax
import numpy as np
import pytest
import toy_models
from jax import numpy as jnp

from spec_t5x import network
from spec_t5x.decoding_types import Models, Weights
from spec_t5x.drafts.model import ModelDraft
from spec_t5x.standardize import standardize

VOCAB, LENGTH, ROWS = 8, 10, 24


def random_tables(seed=0):
  rng = np.random.default_rng(seed)
  target = rng.normal(size=(1, 8191, VOCAB)).astype("float32")
  return target, target + 0.7 * rng.normal(size=target.shape).astype("float32")


def decode(tables, gamma=3, temperature=1.0, **changes):
  scorer = toy_models.TableScorer(VOCAB)
  return toy_models.run(
      Models(scorer, ModelDraft(scorer, gamma) if gamma else None),
      toy_models.settings(LENGTH, VOCAB, **changes),
      Weights(*tables),
      np.zeros((ROWS, 1)),
      toy_models.rows(ROWS, LENGTH, temperature),
  )


def table_logits(table, tokens):
  """Teacher-forced logits [rows, length, vocab]."""
  codes = toy_models.prefix_codes(jnp.asarray(tokens), VOCAB)[:, :-1]
  return table[0, np.asarray(codes) % table.shape[1]]


def chosen(log_probs, tokens):
  """Log-probabilities of the tokens, 0 behind EOS."""
  at_tokens = np.take_along_axis(log_probs, tokens[..., None], axis=-1)[..., 0]
  ended = np.cumsum(tokens == 1, axis=1) - (tokens == 1) > 0
  return np.where(ended, 0.0, at_tokens)


@pytest.mark.parametrize("gamma", [0, 3])
@pytest.mark.parametrize(
    "sampling",
    [
        dict(temperature=0.5, top_k=3),
        dict(temperature=2.0, block_verification=True),
    ],
)
def test_rescaled_ones_are_of_the_law_that_was_sampled(gamma, sampling):
  tables = random_tables()
  decoded = decode(tables, gamma, **sampling)
  law = standardize(
      table_logits(tables[0], decoded.tokens),
      sampling["temperature"],
      sampling.get("top_k", 0),
  )
  with np.errstate(divide="ignore"):
    expected = chosen(np.log(law), decoded.tokens)
  np.testing.assert_allclose(decoded.token_log_probs, expected, atol=1e-5)


@pytest.mark.parametrize("greedy", [False, True])
def test_others_are_of_the_plain_softmax(greedy):
  tables = random_tables()
  decoded = decode(
      tables, greedy=greedy, temperature=0.5, rescale_log_probs=False
  )
  logits = table_logits(tables[0], decoded.tokens)
  expected = chosen(jax.nn.log_softmax(logits), decoded.tokens)
  np.testing.assert_allclose(decoded.token_log_probs, expected, atol=1e-5)
  assert expected.min() < -1


def test_rescaled_ones_of_a_greedy_text_are_0():
  decoded = decode(random_tables(), greedy=True, temperature=0.0)
  np.testing.assert_array_equal(decoded.token_log_probs, 0.0)


def test_of_a_t5_equal_its_full_forward_pass():
  config, params = toy_models.tiny_t5(
      0, num_encoder_layers=1, num_decoder_layers=1
  )
  scorer = network.T5Scorer(config)
  rng = np.random.default_rng(0)
  inputs = jnp.asarray(rng.integers(2, 16, (ROWS, 5)), "int32")
  prompt = rng.integers(2, 16, (ROWS, 2))
  prompt[::2, 1] = 0
  decoded = toy_models.run(
      Models(scorer, ModelDraft(scorer, 3)),
      toy_models.settings(LENGTH, 16, rescale_log_probs=False),
      Weights(params, toy_models.noisy(params, 0, 0.3)),
      inputs,
      toy_models.rows(ROWS, LENGTH, 1.0, prompt),
  )
  tokens = decoded.tokens
  forward = jax.jit(network.build(config).apply)
  logits = forward(
      {"params": params},
      inputs,
      jnp.pad(tokens, ((0, 0), (1, 0)))[:, :-1],
      jnp.ones(tokens.shape, "int32"),
  )
  expected = chosen(jax.nn.log_softmax(logits), tokens)
  known = np.pad(prompt != 0, ((0, 0), (0, LENGTH - 2)))
  expected = np.where(known, 0.0, expected)
  np.testing.assert_allclose(decoded.token_log_probs, expected, atol=1e-4)
  assert 0 < decoded.counts.accepted.sum() < decoded.counts.tested.sum()


def test_rescaled_ones_of_a_lenient_greedy_text_are_of_its_argmax():
  """A one-hot law has no probability for what lenience lets through."""
  tables = random_tables()
  decoded = decode(tables, greedy=True, temperature=0.0, lenience=0.1)
  best = table_logits(tables[0], decoded.tokens).argmax(axis=-1)
  expected = chosen(
      np.where(best[..., None] == np.arange(VOCAB), 0.0, -np.inf),
      decoded.tokens,
  )
  np.testing.assert_array_equal(decoded.token_log_probs, expected)
  assert np.isneginf(expected).any()


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("model", [0, 1])
@pytest.mark.parametrize("greedy", [False, True])
def test_bad_logits_are_reported_for_their_row_only(model, value, greedy):
  """Row r starts with token r % 4 + 2; only the logits behind 3 are bad."""
  tables = random_tables()
  code = 3 + 1  # of the prefix (3,)
  tables[model][0, code, 5] = value
  scorer = toy_models.TableScorer(VOCAB)
  first = np.arange(ROWS) % 4 + 2
  decoded = toy_models.run(
      Models(scorer, ModelDraft(scorer, 2)),
      toy_models.settings(LENGTH, VOCAB, greedy=greedy),
      Weights(*tables),
      np.zeros((ROWS, 1)),
      toy_models.rows(ROWS, LENGTH, 0.0 if greedy else 1.0, first[:, None]),
  )
  np.testing.assert_array_equal(decoded.finite, first != 3)


def test_banned_ids_are_no_fault():
  target, draft = random_tables()
  target[..., 4] = draft[..., 6] = -np.inf
  decoded = decode((target, draft))
  assert decoded.finite.all()
  assert not (decoded.tokens == 4).any()
  assert (decoded.tokens == 6).any()


def test_what_a_finished_row_reads_is_no_fault():
  """Rows wait for others behind their EOS, where this target has no law."""
  scripts = np.array([[2, 1, 2, 2, 2, 2, 2, 2], [2, 3, 4, 5, 6, 7, 2, 1]])
  table = np.array(toy_models.table_of_scripts(scripts, VOCAB))
  code = int(toy_models.prefix_codes(scripts[:1], VOCAB)[0, 2])
  draft = np.broadcast_to(np.float32(0), table.shape).copy()
  # Never drafted from, so that the target's fault cannot be seen in a block.
  draft[0, :, 7] = 100.0
  table[0, code % table.shape[1]] = np.nan
  scorer = toy_models.TableScorer(VOCAB)
  decoded = toy_models.run(
      Models(scorer, ModelDraft(scorer, 1)),
      toy_models.settings(8, VOCAB),
      Weights(table, draft),
      np.arange(2)[:, None],
      toy_models.rows(2, 8),
  )
  np.testing.assert_array_equal(decoded.tokens[:, :3], [[2, 1, 0], [2, 3, 4]])
  assert decoded.finite.all()

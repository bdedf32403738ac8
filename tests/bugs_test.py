"""Faults of other speculative decoders, each with the tests that exclude it.

Users of other systems reported these, or they were found by running them. The
list names the test for each; tests of this file are the recipes that no other
file has.
"""

import ast
import dataclasses
import pathlib

import jax
import numpy as np
import pytest
import toy_models
from enumeration import Cells, Script, output_laws
from jax import numpy as jnp

from spec_t5x import inputs, network, standardize
from spec_t5x.decoding_types import Models, Weights
from spec_t5x.drafts.model import ModelDraft
from spec_t5x.law import Law, Sampling
from spec_t5x.model import Model
from spec_t5x.types import Proposal

BUGS = {
    "greedy assisted differs from greedy (HF #30042)": (
        "decoding_greedy_test::test_t5",
        "decoding_greedy_test::test_tables",
    ),
    "a rewound cache is added to (T5X, flaxformer)": (
        "network_blocks_test::test_rewinding_overwrites",
        "network_blocks_test::test_control_adding_to_the_cache_is_found",
    ),
    "rejected keys are zeroed, not hidden (mlx-vlm #1962)": (
        "network_blocks_test::test_rewinding_overwrites",
        "bugs_test::test_rows_of_all_accept_lengths_share_a_batch",
    ),
    "all rows advance alike (mlx-vlm #1144)": (
        "network_blocks_test::test_rows_rewind_by_different_amounts",
        "bugs_test::test_rows_of_all_accept_lengths_share_a_batch",
    ),
    "the draft misses its last token (ColossalAI #5449, gpt-fast)": (
        "decoding_greedy_test::test_t5",
    ),
    "tokens behind an accepted EOS are emitted (HF #47912)": (
        "decoding_test::test_eos_inside_a_block_ends_the_text_there",
        "bugs_test::test_eos_in_the_middle_of_a_block",
    ),
    "more than max_new_tokens (HF #46993, #47195)": (
        "decoding_test::test_limit_cuts_to_the_token_and_rejects_nothing",
    ),
    "a block runs over the buffer's edge (lorax #474, TRT-LLM #16826)": (
        "bugs_test::test_prompts_up_to_the_edge_of_the_buffer",
        "decoding_law_controls_test"
        "::test_block_moved_back_into_a_short_buffer",
    ),
    "the draft takes its argmax, q is a softmax (HF #32867)": (
        "bugs_test::test_argmax_of_a_draft_is_a_point_mass",
    ),
    "q is returned from before top-k (HF #47932)": (
        "decoding_law_controls_test::test_draft_law_from_before_top_k",
        "decoding_law_test::test_temperature_and_truncation",
    ),
    "greedy accepts by p / q of raw laws (jaymody #9, romsto)": (
        "decoding_test"
        "::test_draft_of_the_most_probable_token_at_temperature_0",
        "verification_test"
        "::test_temperature_zero_always_emits_the_targets_argmax",
    ),
    "a residual of zeros gives NaN or any id (jaymody #5, keras-hub)": (
        "verification_test"
        "::test_a_residual_without_mass_falls_back_to_the_target",
        "verification_test::test_equal_laws_accept_everything",
    ),
    "u <= p / q accepts p = 0 (tpu-inference, HF)": (
        "verification_test"
        "::test_a_token_of_probability_zero_is_rejected_even_by_u_zero",
    ),
    "one uniform for all positions (feifeibear)": (
        "decoding_law_controls_test::test_one_uniform_for_a_block",
        "verification_sampling_test"
        "::test_accepted_tokens_are_a_capped_geometric_mean",
    ),
    "rows and decodes share their noise (T5X temperature array)": (
        "decoding_rows_test"
        "::test_decodes_of_one_input_differ_and_a_seed_repeats_them",
        "decoding_sampling_test::test_law_and_independence",
    ),
    "several decodes (HF num_return_sequences, T5X's order)": (
        "decoder_test::test_several_decodes_are_sorted_and_differ",
    ),
    "one vocabulary, two paddings (HF #4875, #9247, #45307)": (
        "decoding_logits_test::test_padded_ids_are_never_emitted",
        "decoding_logits_test::test_padded_ids_at_temperature_0",
        "decoder_test::test_models_that_do_not_match_are_refused",
        "bugs_test::test_paddings_of_real_vocabularies",
    ),
    "relative bias of a block (TRT-LLM #13870, keras-hub #2932)": (
        "network_blocks_test::test_every_split_into_blocks",
        "biases_test::test_bias_is_taken_at_each_querys_own_position",
    ),
    "padding of the inputs changes results (bert4keras #387, ReProver)": (
        "network_test::test_padding_of_the_inputs_changes_nothing",
        "decoder_test::test_padding_of_the_input_changes_nothing",
    ),
    "logit processors see the wrong prefix (HF #30263, vLLM)": (
        "decoding_logits_test"
        "::test_callback_sees_the_right_prefix_at_every_place",
        "decoding_logits_test::test_callback_that_bans",
    ),
    "tokens behind EOS are counted (vLLM #56101)": (
        "decoding_test::test_eos_inside_a_block_ends_the_text_there",
    ),
    "acceptance above 1 (sglang #11572)": (
        "decoding_greedy_test::test_t5",
        "statistics_test::test_more_accepted_than_tested_is_refused",
    ),
    "a mean of ratios (slime #2240)": (
        "statistics_test::test_pooled_ratios_are_not_means_of_ratios",
    ),
    "shards accept different counts (vLLM #17498, #31154)": (
        "partitioning_test::test_decodes_as_one_device",
    ),
    "slower than plain decoding, unseen (vLLM #8439, HF #36337)": (
        "theory_test::test_best_gamma_is_zero_where_drafting_does_not_pay",
        "theory_test" "::test_a_slow_verification_lowers_speed_and_best_gamma",
    ),
    "token id 0 raises (feifeibear)": (
        "decoding_test::test_pad_is_a_token_like_others",
    ),
    "an epsilon gives mass to banned ids (keras-hub, tpu-inference)": (
        "standardize_sample_test::test_one_hot_law_never_draws_another_id",
        "standardize_test::test_banned_ids_have_probability_zero",
    ),
    "nothing to read (empty input, empty batch)": (
        "decoder_test::test_empty_inputs_decode_as_plainly",
        "decoder_test::test_bad_inputs_are_named",
        "network_test::test_inputs_of_nothing_but_padding_make_no_nan",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_every_bug_has_its_tests(bug):
  for name in BUGS[bug]:
    module, function = name.split("::")
    source = pathlib.Path(__file__).with_name(f"{module}.py").read_text("utf-8")
    defined = {getattr(node, "name", "") for node in ast.parse(source).body}
    assert function in defined, name


def test_rows_of_all_accept_lengths_share_a_batch(quick_compilation):
  """Rows that accept 0 to 4 tokens of each block: a T5's texts are as alone."""
  gamma, length = 4, 15
  config, params = toy_models.tiny_t5(3)
  scorer = network.T5Scorer(config)
  rng = np.random.default_rng(0)
  texts = rng.integers(2, 16, (gamma + 1, 6))
  settings = toy_models.settings(length, 16, greedy=True, eos_id=16)
  rows = toy_models.rows(gamma + 1, length, 0.0)
  plain = toy_models.run(
      Models(scorer), settings, Weights(params), texts, rows
  ).tokens
  accepted = np.arange(gamma + 1)[:, None]
  rejected = np.arange(length) % (accepted + 1) == accepted
  script = jnp.asarray(np.where(rejected, (plain + 1) % 16, plain))
  decode = lambda some: toy_models.run(
      Models(scorer, toy_models.ScriptedDraft(gamma)),
      settings,
      Weights(params, script[some]),
      texts[some],
      jax.tree.map(lambda x: x[some], rows),
  )
  together = decode(np.arange(gamma + 1))
  np.testing.assert_array_equal(together.tokens, plain)
  histogram = together.counts.accept_counts
  np.testing.assert_array_equal(histogram.argmax(axis=1), accepted[:, 0])
  for row in range(gamma + 1):
    alone = decode(np.array([row]))
    np.testing.assert_array_equal(alone.tokens[0], plain[row])
    np.testing.assert_array_equal(alone.counts.accept_counts[0], histogram[row])


def test_eos_in_the_middle_of_a_block():
  """The recipe: target and draft say 5, EOS, 6, 7; gamma = 4."""
  script = np.array([[5, 1, 6, 7]])
  decoded = toy_models.run(
      Models(toy_models.TableScorer(8), toy_models.ScriptedDraft(4)),
      toy_models.settings(4, 8, greedy=True),
      Weights(toy_models.table_of_scripts(script, 8), jnp.asarray(script)),
      [[0]],
      toy_models.rows(1, 4, 0.0),
  )
  assert decoded.tokens.tolist() == [[5, 1, 0, 0]]
  assert decoded.counts.emitted.tolist() == [2]
  assert decoded.counts.iterations.tolist() == [1]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_prompts_up_to_the_edge_of_the_buffer(temperature):
  """Prompts that leave 0, 1, 2, 3 tokens of the buffer; gamma = 4."""
  length, vocab = 8, 8
  left = np.array([0, 1, 2, 3])
  rng = np.random.default_rng(0)
  prompt = rng.integers(2, vocab, (4, length))
  prompt = np.where(np.arange(length) < length - left[:, None], prompt, 0)
  # One-hot laws, so that plain and speculative samples are the same.
  table = 100.0 * rng.permuted(
      np.tile(np.arange(vocab), (1, 8191, 1)), axis=-1
  ).astype("float32")
  table[..., 1] = -100.0
  scorer = toy_models.TableScorer(vocab)
  decode = lambda gamma, draft: toy_models.run(
      Models(scorer, ModelDraft(scorer, gamma) if gamma else None),
      toy_models.settings(length, vocab, greedy=temperature == 0),
      Weights(table, draft),
      np.zeros((4, 1)),
      toy_models.rows(4, length, temperature, prompt),
  )
  plain = decode(0, None)
  assert plain.counts.emitted.tolist() == left.tolist()
  known = prompt != 0
  np.testing.assert_array_equal(plain.tokens[known], prompt[known])
  for draft in (table, table[:, ::-1]):
    decoded = decode(4, draft)
    np.testing.assert_array_equal(decoded.tokens, plain.tokens)
    np.testing.assert_array_equal(decoded.counts.emitted, left)


@dataclasses.dataclass(frozen=True)
class ArgmaxDraft(ModelDraft):
  """The fault: proposes its argmax, and calls the softmax its law."""

  def propose(self, *arguments):
    proposal, cache = super().propose(*arguments)
    tokens = proposal.probs.argmax(axis=-1).astype(proposal.tokens.dtype)
    return Proposal(tokens, proposal.probs), cache


@pytest.mark.parametrize(
    "make_draft", [ModelDraft, toy_models.PointDraft, ArgmaxDraft]
)
def test_argmax_of_a_draft_is_a_point_mass(make_draft):
  """The recipe: p and q below; the fault gives (.75, .25, 0, 0)."""
  p, q = (0.3, 0.5, 0.1, 0.1), (0.4, 0.25, 0.2, 0.15)
  scorer = toy_models.TableScorer(4)
  (law,) = output_laws(
      Models(scorer, make_draft(scorer, 1)),
      toy_models.settings(1, 4),
      Weights(
          *(
              toy_models.table_of(lambda prefix, law=law: law, 4, 2)
              for law in (p, q)
          )
      ),
      # p without its first token has 7 cells.
      Script.of(Cells(20, 60, 70), 1, 1),
  )
  found = [float(law.get((token,), 0)) for token in range(4)]
  if make_draft is ArgmaxDraft:
    assert found == pytest.approx([0.75, 0.25, 0, 0])
  else:
    assert found == pytest.approx(p, abs=1e-12)


@pytest.mark.parametrize(
    ("target_size", "draft_size", "num_ids"),
    [(32128, 32100, 32100), (32100, 32128, 32100), (152064, 151936, 151936)],
)
def test_paddings_of_real_vocabularies(target_size, draft_size, num_ids):
  model = lambda size: Model(
      "", toy_models.tiny_config(vocab_size=size), params=None
  )
  limit = inputs.num_ids(model(target_size), model(draft_size), None)
  assert limit == num_ids
  law = Law(jnp.ones(1), Sampling(greedy=False, num_ids=limit), target_size)
  draft_logits = jnp.zeros((1, 1, draft_size)).at[..., num_ids:].set(9.0)
  adjusted = law.adjust(draft_logits, jnp.zeros((1, 4), int), jnp.ones(1, int))
  probs = standardize.standardize(adjusted)[0, 0]
  assert probs.shape == (target_size,)
  np.testing.assert_array_equal(probs[num_ids:], 0.0)
  np.testing.assert_allclose(probs[:num_ids], 1 / num_ids, rtol=1e-5)

"""What a user of `Decoder` meets: results, checks, errors."""

import dataclasses

import jax
import numpy as np
import pytest

import spec_t5x
from spec_t5x import inputs, model, train
from spec_t5x.config import T5Config
from spec_t5x.vocabulary import Vocabulary

VOCAB = 24


def make_model(seed, width=16, layers=1, vocab=VOCAB, vocabulary=None):
  config = T5Config(
      vocab_size=vocab,
      emb_dim=width,
      num_heads=2,
      head_dim=8,
      mlp_dim=16,
      num_encoder_layers=layers,
      num_decoder_layers=1,
  )
  params = train.init_params(config, seed)
  return spec_t5x.Model(f"model {seed}", config, params, vocabulary)


@pytest.fixture(scope="module")
def target():
  return make_model(0)


@pytest.fixture(scope="module")
def draft():
  return make_model(1, 8)


@pytest.fixture(scope="module")
def decoder(target, draft):
  return spec_t5x.Decoder(target, draft, gamma=2, max_decode_steps=5)


@pytest.fixture(scope="module")
def sampler(target, draft):
  return spec_t5x.Decoder(
      target,
      draft,
      gamma=2,
      temperature=1.0,
      max_decode_steps=5,
      num_decodes=3,
      rescale_log_probs=False,
  )


def test_shapes_of_one_decode(decoder):
  result = decoder([[5, 6, 1], [7, 1]])
  assert result.tokens.shape == result.token_log_probs.shape == (2, 5)
  assert result.log_probs.shape == (2,)
  assert result.texts is None
  assert len(result.per_decode) == 2
  emitted = [each.emitted for each in result.per_decode]
  assert result.statistics.emitted == sum(emitted)


def test_several_decodes_are_sorted_and_differ(sampler):
  result = sampler([[5, 6, 1], [7, 1]])
  assert result.tokens.shape == (2, 3, 5)
  assert (np.diff(result.log_probs, axis=1) >= 0).all()
  np.testing.assert_allclose(
      result.token_log_probs.sum(axis=2), result.log_probs, rtol=1e-6
  )
  assert len(np.unique(result.tokens[0], axis=0)) > 1
  assert len(result.per_decode) == 6


def test_an_input_is_decoded_alike_in_any_company(sampler):
  together = sampler([[5, 6, 1], [7, 1]], example_ids=[3, 9])
  alone = sampler([[7, 1]], example_ids=[9])
  np.testing.assert_array_equal(together.tokens[1], alone.tokens[0])
  other = sampler([[7, 1]], example_ids=[10])
  assert (other.tokens != alone.tokens).any()


def test_the_seed_changes_samples(target, draft, sampler):
  other = spec_t5x.Decoder(
      target,
      draft,
      gamma=2,
      temperature=1.0,
      max_decode_steps=5,
      num_decodes=3,
      seed=1,
  )
  assert (other([[7, 1]]).tokens != sampler([[7, 1]]).tokens).any()


@pytest.mark.parametrize("rows", [[[]], [[0, 0, 0]], [[], [5, 1]]])
def test_empty_inputs_decode_as_plainly(decoder, target, rows):
  plain = spec_t5x.Decoder(target, max_decode_steps=5, vocab_size=VOCAB)
  result = decoder(rows)
  np.testing.assert_array_equal(result.tokens, plain(rows).tokens)
  assert np.isfinite(result.log_probs).all()


def test_padding_of_the_input_changes_nothing(decoder):
  short = decoder([[5, 6, 1]])
  padded = decoder([[5, 6, 1, 0, 0, 0]])
  np.testing.assert_array_equal(short.tokens, padded.tokens)


def test_prompts_are_kept_and_not_counted(decoder):
  result = decoder([[5, 1], [6, 1]], prompts=[[9, 8], [4]])
  assert result.tokens.shape == (2, 7)
  assert result.tokens[0, :2].tolist() == [9, 8]
  assert result.tokens[1, 0] == 4
  assert (result.token_log_probs[0, :2] == 0).all()
  assert result.statistics.emitted <= 10


def test_temperatures_may_differ_by_input(target, draft):
  decoder = spec_t5x.Decoder(target, draft, gamma=2, max_decode_steps=5)
  mixed = decoder([[5, 1], [5, 1]], temperature=[0.0, 3.0])
  greedy = decoder([[5, 1]])
  np.testing.assert_array_equal(mixed.tokens[0], greedy.tokens[0])
  assert (mixed.tokens[0] != mixed.tokens[1]).any()


def test_texts_go_in_and_out():
  words = Vocabulary()
  target = make_model(0, vocab=8064, vocabulary=words)
  decoder = spec_t5x.Decoder(target, max_decode_steps=4, prefix="say: ")
  result = decoder(["Open the file."])
  assert isinstance(result.texts[0], str)
  assert result.texts[0] == words.decode(result.tokens[0])
  assert decoder.encode(["a"])[0] == words.encode("say: a") + [1]
  # public bug: 32100 ids padded to 32128; padded ids are never emitted.
  assert result.tokens.max() < words.num_ids == 8000


def test_inputs_of_a_decoder_only_target_are_prompts():
  target, draft = make_model(2, layers=0), make_model(3, 8, layers=0)
  decoder = spec_t5x.Decoder(target, draft, gamma=2, max_decode_steps=4)
  plain = spec_t5x.Decoder(target, max_decode_steps=4)
  rows = [[5, 6, 7], [9]]
  result = decoder(rows)
  np.testing.assert_array_equal(result.tokens, plain(rows).tokens)
  assert result.tokens[0, :3].tolist() == [5, 6, 7]
  with pytest.raises(ValueError, match="`prompts` must be None for a decoder-"):
    decoder(rows, prompts=[[1], [2]])


# public bug: target V = 12 with 4 padded ids, draft V = 8.
def test_models_may_pad_one_vocabulary_differently():
  target, draft = make_model(4, vocab=12), make_model(5, 8, vocab=8)
  rows = [[5, 1], [6, 1], [7, 1]]
  decoder = spec_t5x.Decoder(target, draft, gamma=3, max_decode_steps=12)
  plain = spec_t5x.Decoder(target, max_decode_steps=12, vocab_size=8)
  result = decoder(rows)
  np.testing.assert_array_equal(result.tokens, plain(rows).tokens)
  assert result.tokens.max() < 8
  wide = spec_t5x.Decoder(target, max_decode_steps=12)(rows)
  assert wide.tokens.max() >= 8  # Unless they are kept from it.


def test_new_texts_of_a_known_length_compile_nothing(decoder, caplog):
  decoder([[5, 6, 1]])
  with jax.log_compiles():
    decoder([[9, 9, 9, 9, 1]])
  assert not [r for r in caplog.records if "Compiling" in r.getMessage()]
  with jax.log_compiles():
    decoder([list(range(2, 20))])
  assert [r for r in caplog.records if "Compiling" in r.getMessage()]


def test_logits_that_are_not_finite_name_the_input(target, draft):
  params = jax.tree.map(np.array, target.params)
  params["token_embedder"]["embedding"][9] = np.nan
  broken = dataclasses.replace(target, params=params)
  decoder = spec_t5x.Decoder(broken, draft, gamma=2, max_decode_steps=5)
  with pytest.raises(FloatingPointError, match=r"not finite for inputs \[7\]"):
    decoder([[5, 1], [9, 1]], example_ids=[4, 7])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(gamma=-1), "`gamma` must be an integer, at least 0. Got -1."),
        (dict(gamma=2.0), "`gamma` must be an integer, at least 0. Got 2.0."),
        (dict(num_decodes=0), "`num_decodes` must be an integer, at least 1"),
        (dict(max_decode_steps=0), "`max_decode_steps` must be an integer, at"),
        (
            dict(lenience=0),
            r"`lenience` must be in \(0, 1\], 1 = exact. Got 0.",
        ),
        (
            dict(lenience=1.5),
            r"`lenience` must be in \(0, 1\], 1 = exact. Got 1.5.",
        ),
        (
            dict(lenience=0.5, block_verification=True),
            "`lenience` must be 1 if `block_verification` is on",
        ),
        (dict(temperature=-1), "`temperature` must be finite and >= 0"),
        (dict(top_k=2, top_p=0.5), "`top_k` and `top_p` must not be used"),
        (dict(vocab_size=99), "`vocab_size` must be between 2 and 24. Got 99"),
    ],
)
def test_bad_settings_are_named(target, draft, arguments, message):
  with pytest.raises(ValueError, match=message):
    spec_t5x.Decoder(target, draft, **arguments)


@pytest.mark.parametrize(
    ("texts", "arguments", "message"),
    [
        (None, {}, "`texts` must be a list of texts or of token ids. Got None"),
        (
            "Hello",
            {},
            "`texts` must be a list of texts or of token ids. Got 'H",
        ),
        ([], {}, "`texts` must hold at least one input. Got none."),
        (["Hello"], {}, "`texts` must be token ids, as the target 'model 0'"),
        (
            [[5.0]],
            {},
            r"`texts\[0\]` must be a sequence of integers. Got float",
        ),
        ([[5], [24]], {}, r"`texts\[1\]` must hold ids in \[0, 24\). Got 24"),
        ([[-1]], {}, r"`texts\[0\]` must hold ids in \[0, 24\). Got -1 to -1"),
        ([[5]], dict(prompts=[]), "`prompts` must have one entry per input, 1"),
        (
            [[5]],
            dict(prompts=[[5, 0, 7]]),
            r"`prompts` must not hold PAD \(0\) before another token. Got \[5",
        ),
        (
            [[5]],
            dict(temperature=[0.0, 1.0]),
            r"`temperature` must be one number or one per input, 1. Got shape",
        ),
        (
            [[5]],
            dict(example_ids=[1, 2]),
            "`example_ids` must have one entry per input, 1. Got 2.",
        ),
        (
            [[5]],
            dict(example_ids=[-1]),
            r"`example_ids` must be in \[0, 2\*\*32\). Got -1 to -1.",
        ),
    ],
)
def test_bad_inputs_are_named(decoder, texts, arguments, message):
  with pytest.raises(ValueError, match=message):
    decoder(texts, **arguments)


def test_models_that_do_not_match_are_refused(target):
  with pytest.raises(ValueError, match="`draft` must be decoder-only iff"):
    spec_t5x.Decoder(target, make_model(3, layers=0))
  with pytest.raises(ValueError, match="24 ids give or take 128 of padding"):
    spec_t5x.Decoder(target, make_model(3, vocab=400))
  with pytest.raises(ValueError, match="`target` must be a model, as"):
    spec_t5x.Decoder("path/to/target")


def test_lenient_batches_must_not_mix_temperatures(target, draft):
  decoder = spec_t5x.Decoder(target, draft, lenience=0.5)
  with pytest.raises(ValueError, match="0 for all inputs or for none if `len"):
    decoder([[5], [6]], temperature=[0.0, 1.0])


def test_lenience_accepts_more(target, draft):
  rows = [[n, 1] for n in range(2, 18)]
  alphas = []
  for lenience in (1.0, 0.3, 0.01):
    decoder = spec_t5x.Decoder(
        target, draft, gamma=2, lenience=lenience, temperature=1.0
    )
    alphas.append(decoder(rows).statistics.alpha_hat)
  assert alphas[0] < alphas[1] < alphas[2]


def test_unknown_shipped_models_are_named():
  with pytest.raises(FileNotFoundError, match="No model is 'shipped:nothing'"):
    model.find("shipped:nothing")


def test_padded_lengths_are_few():
  assert [inputs.padded_length(n) for n in (0, 1, 16, 17)] == [16, 16, 16, 32]


def test_decoders_of_a_model_share_its_weights(target):
  one, other = (spec_t5x.Decoder(target, target, gamma=g) for g in (1, 4))
  arrays = [
      jax.tree.leaves(weights)
      for decoder in (one, other)
      for weights in (decoder.weights.target, decoder.weights.draft)
  ]
  for same in zip(*arrays, strict=True):
    assert len({array.unsafe_buffer_pointer() for array in same}) == 1

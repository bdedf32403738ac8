"""Tests against `transformers` itself: names, logits, both directions."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spec_t5x import checkpoints, network
from spec_t5x.checkpoints import layout, names

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

# Two rows, one padded; decoders start from 0.
INPUTS = np.array([[5, 9, 12, 30, 7, 1], [8, 3, 1, 0, 0, 0]])
OUTPUTS = np.array([[0, 4, 17, 33, 2], [0, 11, 6, 25, 39]])


def make_theirs(feed_forward, tied):
  """A random T5 of `transformers`, of our tiny sizes."""
  torch.manual_seed(0)
  theirs = transformers.T5ForConditionalGeneration(
      transformers.T5Config(
          vocab_size=40,
          d_model=8,
          d_kv=3,
          num_heads=4,
          d_ff=16,
          num_layers=2,
          num_decoder_layers=1,
          feed_forward_proj=feed_forward,
          tie_word_embeddings=tied,
      )
  ).eval()
  if not tied:
    # Version 5 ties all models; a projection of its own unties this one.
    theirs.lm_head.weight = torch.nn.Parameter(torch.randn(40, 8))
  with torch.no_grad():
    for parameter in theirs.parameters():
      # Every tensor must show in the logits: at first norms are 1, and
      # position biases small.
      parameter.add_(0.3 * torch.randn_like(parameter))
  return theirs


def their_logits(theirs):
  with torch.no_grad():
    output = theirs(
        input_ids=torch.tensor(INPUTS),
        attention_mask=torch.tensor(INPUTS > 0),
        decoder_input_ids=torch.tensor(OUTPUTS),
    )
  return output.logits.numpy()


@functools.cache
def compiled(config):
  return jax.jit(network.build(config).apply)


def our_logits(config, params):
  return compiled(config)(
      {"params": params},
      jnp.asarray(INPUTS),
      jnp.asarray(OUTPUTS),
      # No target is padding.
      jnp.ones_like(OUTPUTS),
  )


@pytest.fixture(params=["relu", "gated-gelu"])
def feed_forward(request):
  return request.param


@pytest.fixture(params=[True, False], ids=["tied", "untied"])
def theirs(request, feed_forward):
  return make_theirs(feed_forward, request.param)


@pytest.fixture
def saved(tmp_path, theirs):
  theirs.save_pretrained(tmp_path / "theirs")
  return tmp_path / "theirs"


def test_names_and_shapes(theirs, saved):
  """All tensors of their graph but the tied ones are ours, and conversely."""
  config = checkpoints.open_checkpoint(saved).config
  ours = {
      names.hugging_face_name(path, False): names.hugging_face_shape(path, s)
      for path, s in layout.parameter_shapes(config).items()
  }
  state = {k: tuple(v.shape) for k, v in theirs.state_dict().items()}
  aliases = set(names.EMBEDDING_ALIASES[1:])
  if config.logits_via_embedding:
    aliases.add(names.LOGITS)
  assert ours == {k: s for k, s in state.items() if k not in aliases}


def test_we_read_theirs(theirs, saved):
  logits = our_logits(*checkpoints.load_params(saved))
  np.testing.assert_allclose(logits, their_logits(theirs), atol=1e-4)


def test_we_read_a_ul2(tmp_path):
  """The T5 1.1 of UL2 and FLAN-UL2, with another activation."""
  theirs = make_theirs("gated-silu", tied=False)
  theirs.save_pretrained(tmp_path)
  logits = our_logits(*checkpoints.load_params(tmp_path))
  np.testing.assert_allclose(logits, their_logits(theirs), atol=1e-4)


def test_we_read_the_config_of_older_versions(theirs, saved):
  """Which told scaling by `tie_word_embeddings` alone."""
  path = saved / "config.json"
  fields = json.loads(path.read_text())
  fields["tie_word_embeddings"] = fields.pop("scale_decoder_outputs")
  path.write_text(json.dumps(fields))
  logits = our_logits(*checkpoints.load_params(saved))
  np.testing.assert_allclose(logits, their_logits(theirs), atol=1e-4)


def test_an_untied_config_without_a_projection(tmp_path):
  """Version 5 then projects with the embedding, without the scale."""
  theirs = make_theirs("gated-gelu", tied=False)
  theirs.lm_head.weight = theirs.shared.weight
  theirs.save_pretrained(tmp_path)
  logits = our_logits(*checkpoints.load_params(tmp_path))
  np.testing.assert_allclose(logits, their_logits(theirs), atol=1e-4)


@pytest.mark.parametrize("max_shard_bytes", [2**20, 4000])
def test_they_read_ours(tmp_path, theirs, saved, max_shard_bytes):
  config, params = checkpoints.load_params(saved)
  checkpoints.save_hugging_face(
      tmp_path / "ours",
      config,
      params,
      dtype="float32",
      max_shard_bytes=max_shard_bytes,
  )
  loaded, info = transformers.T5ForConditionalGeneration.from_pretrained(
      tmp_path / "ours", output_loading_info=True
  )
  assert not info["missing_keys"]
  assert not info["unexpected_keys"]
  assert not info["mismatched_keys"]
  np.testing.assert_array_equal(their_logits(loaded), their_logits(theirs))


def test_they_reject_our_decoder_only(tmp_path, decoder_only):
  """Read as an encoder-decoder it would be half random."""
  checkpoints.save_hugging_face(tmp_path / "ours", *decoder_only)
  with pytest.raises(ValueError, match="t5_decoder_only"):
    transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "ours")


def test_logits_tell_the_models_apart(theirs, saved):
  """The comparison above fails on a wrong scale, bias or transposition."""
  config, params = checkpoints.load_params(saved)
  expected = their_logits(theirs)
  flat = layout.flatten(params)
  for path in (
      "decoder/relpos_bias/rel_embedding",
      "encoder/layers_1/attention/query/kernel",
      "decoder/layers_0/encoder_decoder_attention/out/kernel",
      "encoder/layers_0/pre_mlp_layer_norm/scale",
  ):
    changed = layout.unflatten(flat | {path: jnp.roll(flat[path], 1)})
    difference = np.abs(our_logits(config, changed) - expected).max()
    assert difference > 1e-3, path

"""Tests of `config.json`: what the hub holds, and every way to be wrong."""

import dataclasses

import pytest

from spec_t5x.checkpoints import hugging_face_config
from spec_t5x.config import T5Config

# As `google-t5/t5-small`, which predates most fields.
T5_SMALL = {
    "architectures": ["T5WithLMHeadModel"],
    "d_ff": 2048,
    "d_kv": 64,
    "d_model": 512,
    "decoder_start_token_id": 0,
    "dropout_rate": 0.1,
    "eos_token_id": 1,
    "is_encoder_decoder": True,
    "layer_norm_epsilon": 1e-06,
    "model_type": "t5",
    "num_heads": 8,
    "num_layers": 6,
    "pad_token_id": 0,
    "relative_attention_num_buckets": 32,
    "vocab_size": 32128,
}
# As `google/flan-t5-small`.
FLAN_T5_SMALL = T5_SMALL | {
    "d_ff": 1024,
    "dense_act_fn": "gelu_new",
    "feed_forward_proj": "gated-gelu",
    "is_gated_act": True,
    "num_decoder_layers": 8,
    "num_heads": 6,
    "num_layers": 8,
    "relative_attention_max_distance": 128,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
}


def parse(fields):
  return hugging_face_config.parse(fields, "config.json")


def test_t5_1_0():
  assert parse(T5_SMALL) == T5Config(
      vocab_size=32128,
      emb_dim=512,
      num_heads=8,
      head_dim=64,
      mlp_dim=2048,
      num_encoder_layers=6,
      num_decoder_layers=6,
      mlp_activations=("relu",),
      logits_via_embedding=True,
      dropout_rate=0.1,
  )


def test_flan():
  assert parse(FLAN_T5_SMALL) == T5Config(
      vocab_size=32128,
      emb_dim=512,
      num_heads=6,
      head_dim=64,
      mlp_dim=1024,
      num_encoder_layers=8,
      num_decoder_layers=8,
      mlp_activations=("gelu", "linear"),
      logits_via_embedding=False,
      dropout_rate=0.1,
  )


def test_files_of_transformers_5():
  """It always writes `tie_word_embeddings: true`; another flag tells."""
  fields = FLAN_T5_SMALL | {
      "tie_word_embeddings": True,
      "scale_decoder_outputs": False,
      "dtype": "bfloat16",
  }
  assert not parse(fields).logits_via_embedding


def test_activation_without_feed_forward_proj():
  fields = dict(FLAN_T5_SMALL)
  del fields["feed_forward_proj"]
  assert parse(fields).mlp_activations == ("gelu", "linear")


def test_gated_silu():
  fields = FLAN_T5_SMALL | {
      "feed_forward_proj": "gated-silu",
      "dense_act_fn": "silu",
  }
  assert parse(fields).mlp_activations == ("silu", "linear")


@pytest.mark.parametrize("has_name", [True, False])
def test_gelu_without_a_gate_is_that_of_gpt(t5_1_1, has_name):
  config = dataclasses.replace(t5_1_1[0], mlp_activations=("gelu",))
  fields = hugging_face_config.render(config, "float32")
  assert fields["feed_forward_proj"] == fields["dense_act_fn"] == "gelu_new"
  if not has_name:
    del fields["feed_forward_proj"]
  assert parse(fields).mlp_activations == ("gelu",)


def test_round_trip(model):
  config, _ = model
  assert parse(hugging_face_config.render(config, "bfloat16")) == config


def test_round_trip_of_every_field(t5_1_1):
  config = dataclasses.replace(
      t5_1_1[0],
      dropout_rate=0.05,
      relpos_num_buckets=16,
      relpos_max_distance=64,
      mlp_activations=("silu", "linear"),
  )
  assert parse(hugging_face_config.render(config, "float32")) == config


@pytest.mark.parametrize("name", ["vocab_size", "d_model", "num_layers"])
def test_missing_field(name):
  fields = dict(T5_SMALL)
  del fields[name]
  with pytest.raises(ValueError, match=f"`{name}` is missing in config.json"):
    parse(fields)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("model_type", "bart", "must be one of t5, mt5.*Got 'bart'"),
        ("model_type", None, "must be one of t5, mt5.*Got None"),
        ("d_model", "512", "must be a positive integer. Got '512'"),
        ("d_model", True, "must be a positive integer. Got True"),
        ("num_layers", 0, "must be a positive integer. Got 0"),
        ("pad_token_id", 3, "must be 0. Got 3"),
        ("eos_token_id", 2, "must be 1. Got 2"),
        ("decoder_start_token_id", 2, "must be 0. Got 2"),
        ("layer_norm_epsilon", 1e-5, "must be 1e-06. Got 1e-05"),
        (
            "feed_forward_proj",
            "gated-tanh",
            "relu, gelu_new, gated-gelu, gated-silu.",
        ),
        ("dense_act_fn", "gelu", "Got 'gelu'"),
        ("dropout_rate", "no", r"must be in \[0, 1\). Got 'no'"),
    ],
)
def test_bad_field(field, value, message):
  with pytest.raises(ValueError, match=f"config.json.*{message}") as error:
    parse(T5_SMALL | {field: value})
  assert field in str(error.value) or field == "dense_act_fn"


@pytest.mark.parametrize(
    "change", [{"is_gated_act": False}, {"dense_act_fn": "relu"}]
)
def test_contradiction(change):
  with pytest.raises(ValueError, match="config.json contradicts itself"):
    parse(FLAN_T5_SMALL | change)


def test_render_rejects_other_activations(t5_1_1):
  config = dataclasses.replace(t5_1_1[0], mlp_activations=("silu",))
  with pytest.raises(ValueError, match=r"mlp_activations.*Got \('silu',\)"):
    hugging_face_config.render(config, "float32")


class TestReadFields:

  def test_absent(self, tmp_path):
    with pytest.raises(FileNotFoundError, match="config.json"):
      hugging_face_config.read_fields(tmp_path / "config.json")

  @pytest.mark.parametrize(
      ("content", "message"),
      [
          (b'{"d_model": 5', "is not valid JSON"),
          (b"\xff\xfe", "is not valid JSON"),
          (b"[1, 2]", "must hold a JSON object"),
      ],
  )
  def test_malformed(self, tmp_path, content, message):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"config.json {message}"):
      hugging_face_config.read_fields(path)

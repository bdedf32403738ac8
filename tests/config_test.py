import re

import pytest
import toy_models


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(vocab_size=0), "`vocab_size` must be at least 1. Got 0."),
        (dict(num_heads=-1), "`num_heads` must be at least 1. Got -1."),
        (
            dict(num_decoder_layers=0),
            "`num_decoder_layers` must be at least 1. Got 0.",
        ),
        (
            dict(num_encoder_layers=-1),
            "`num_encoder_layers` must be 0 (decoder-only) or more. Got -1.",
        ),
        (
            dict(mlp_activations=("gelu", "tanh")),
            "`mlp_activations` must be names among ('relu', 'gelu', 'silu',"
            " 'linear'). Got ('gelu', 'tanh').",
        ),
        (
            dict(mlp_activations=()),
            "`mlp_activations` must be names among ('relu', 'gelu', 'silu',"
            " 'linear'). Got ().",
        ),
        (
            dict(dtype="float16"),
            "`dtype` must be 'float32' or 'bfloat16'. Got 'float16'.",
        ),
    ],
)
def test_wrong_fields(changes, message):
  with pytest.raises(ValueError, match=re.escape(message)):
    toy_models.tiny_config(**changes)


def test_fields_are_normalised_and_hashable():
  config = toy_models.tiny_config(mlp_activations=["relu"], dtype="bfloat16")
  assert config.mlp_activations == ("relu",)
  assert hash(config) == hash(
      toy_models.tiny_config(mlp_activations=("relu",), dtype="bfloat16")
  )
  assert not config.decoder_only
  assert toy_models.tiny_config(num_encoder_layers=0).decoder_only

import re

import jax
import numpy as np
import pytest
import toy_models
from jax import numpy as jnp

from spec_t5x import network, packing

pytestmark = pytest.mark.usefixtures("quick_compilation")


@pytest.mark.parametrize(
    "changes",
    [
        dict(),
        dict(num_encoder_layers=0),
        dict(mlp_activations=("relu",), logits_via_embedding=True),
        dict(dtype="bfloat16"),
    ],
)
def test_logits_are_the_same(changes):
  layers = dict(num_encoder_layers=1, num_decoder_layers=1)
  config, params = toy_models.tiny_t5(0, **{**layers, **changes})
  rng = np.random.default_rng(0)
  draw = lambda *shape: jnp.asarray(rng.integers(2, 16, shape), "int32")
  inputs, text, index = draw(3, 5), draw(3, 4), jnp.array([0, 2, 1])

  def logits(config, params):
    scorer = network.T5Scorer(config)

    @jax.jit
    def read(params):
      cache = scorer.init_cache(3, 6)
      context = scorer.start(params, inputs)
      return scorer.extend(params, context, cache, text, index)[0]

    return read(params)

  packed_config, packed = packing.pack(config, params)
  assert packed_config.packed
  tolerance = 1e-5 if config.dtype == "float32" else 0.1
  np.testing.assert_allclose(
      logits(packed_config, packed), logits(config, params), atol=tolerance
  )
  count = lambda tree: sum(x.size for x in jax.tree.leaves(tree))
  assert count(packed) == count(params)


def test_packing_twice():
  config, params = toy_models.tiny_t5(0, pack=True)
  message = "`config` must not be packed. Got `packed=True`."
  with pytest.raises(ValueError, match=re.escape(message)):
    packing.pack(config, params)

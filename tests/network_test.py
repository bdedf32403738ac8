"""T5's tree, dtypes and masks; blocks are in `network_blocks_test`."""

import jax
import numpy as np
import pytest
import toy_models
from flax import traverse_util
from jax import numpy as jnp

from spec_t5x import network

pytestmark = pytest.mark.usefixtures("quick_compilation")


def tokens(seed, *shape):
  return jnp.asarray(
      np.random.default_rng(seed).integers(2, 16, shape), "int32"
  )


def variables(**changes):
  """Shapes and logical axes of a one-layer T5, by path."""
  config = toy_models.tiny_config(num_decoder_layers=1, **changes)
  text = jnp.ones((1, 4), "int32")
  arguments = (text,) * (2 if config.decoder_only else 3)
  init = network.build(config).init
  tree = jax.eval_shape(init, jax.random.key(0), *arguments)
  shapes = traverse_util.flatten_dict(tree["params"], sep="/")
  axes = traverse_util.flatten_dict(tree["params_axes"], sep="/")
  return {
      path: (value.shape, tuple(axes[path + "_axes"].names))
      for path, value in shapes.items()
  }


EMBED, WIDE = ((16,), ("embed",)), ((16, 16), ("embed", "joined_kv"))
ATTENTION = {
    **{f"{name}/kernel": WIDE for name in ("query", "key", "value")},
    "out/kernel": ((16, 16), ("joined_kv", "embed")),
}
BIAS = {"relpos_bias/rel_embedding": ((2, 8), ("heads", "relpos_buckets"))}
TABLE = {"token_embedder/embedding": ((16, 16), ("vocab", "embed"))}
HEAD = {"logits_dense/kernel": ((16, 16), ("embed", "vocab"))}
GATED = {
    "wi_0/kernel": ((16, 24), ("embed", "mlp")),
    "wi_1/kernel": ((16, 24), ("embed", "mlp")),
    "wo/kernel": ((24, 16), ("mlp", "embed")),
}
PLAIN = {"wi/kernel": GATED["wi_0/kernel"], "wo/kernel": GATED["wo/kernel"]}


def under(prefix, tree):
  return {f"{prefix}/{path}": value for path, value in tree.items()}


def encoder(mlp):
  layer = {
      "pre_attention_layer_norm/scale": EMBED,
      "pre_mlp_layer_norm/scale": EMBED,
      **under("attention", ATTENTION),
      **under("mlp", mlp),
  }
  stack = {**BIAS, "encoder_norm/scale": EMBED, **under("layers_0", layer)}
  return under("encoder", stack)


def decoder(mlp, cross=True):
  layer = {
      "pre_self_attention_layer_norm/scale": EMBED,
      "pre_mlp_layer_norm/scale": EMBED,
      **under("self_attention", ATTENTION),
      **under("mlp", mlp),
  }
  if cross:
    layer["pre_cross_attention_layer_norm/scale"] = EMBED
    layer |= under("encoder_decoder_attention", ATTENTION)
  return {**BIAS, "decoder_norm/scale": EMBED, **under("layers_0", layer)}


def test_tree_of_t5_1_1_is_t5xs():
  expected = {
      **TABLE,
      **encoder(GATED),
      **under("decoder", {**decoder(GATED), **HEAD}),
  }
  assert variables(num_encoder_layers=1) == expected


def test_tree_of_t5_1_0_is_t5xs():
  expected = {**TABLE, **encoder(PLAIN), **under("decoder", decoder(PLAIN))}
  found = variables(
      num_encoder_layers=1,
      mlp_activations=("relu",),
      logits_via_embedding=True,
  )
  assert found == expected


def test_tree_of_a_decoder_only_model_is_t5xs():
  found = variables(num_encoder_layers=0)
  stack = {**TABLE, **decoder(GATED, cross=False), **HEAD}
  assert found == under("decoder", stack)


@pytest.mark.parametrize("changes", [dict(), dict(num_encoder_layers=0)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_dtypes(dtype, changes):
  """Parameters are kept as given; caches are of `dtype`, logits float32."""
  config, params = toy_models.tiny_t5(0, dtype=dtype, **changes)
  scorer = network.T5Scorer(config)
  context = jax.eval_shape(scorer.start, params, tokens(0, 2, 5))
  cache = scorer.init_cache(2, 7)
  logits, new = jax.eval_shape(
      scorer.extend, params, context, cache, tokens(1, 2, 3), jnp.zeros(2, int)
  )
  assert logits.dtype == jnp.float32
  assert logits.shape == (2, 3, 16)
  assert {x.dtype.name for x in jax.tree.leaves(params)} == {"float32"}
  assert {x.dtype.name for x in jax.tree.leaves((context, new))} == {dtype}
  assert jax.tree.map(jnp.shape, new) == jax.tree.map(jnp.shape, cache)


def test_bfloat16_is_close_to_float32():
  text = tokens(0, 2, 6)
  logits = {}
  for dtype in ("float32", "bfloat16"):
    config, params = toy_models.tiny_t5(0, dtype=dtype)
    apply = jax.jit(network.build(config).apply)
    logits[dtype] = apply({"params": params}, text, text, text)
  error = jnp.abs(logits["float32"] - logits["bfloat16"]).max()
  assert 1e-4 < error < 0.5


def gradients_by_token(config, params, inputs, text, place):
  """Whether the logits at `place` depend on each id's embedding."""

  def total(table):
    path = ("decoder",) if config.decoder_only else ()
    changed = traverse_util.flatten_dict(params)
    changed[*path, "token_embedder", "embedding"] = table
    changed = traverse_util.unflatten_dict(changed)
    texts = (text, jnp.ones_like(text))
    if not config.decoder_only:
      texts = (inputs, *texts)
    logits = network.build(config).apply({"params": changed}, *texts)
    return (logits[0, place] ** 2).sum()

  owner = params["decoder"] if config.decoder_only else params
  table = owner["token_embedder"]["embedding"]
  return np.asarray(jax.jit(jax.grad(total))(table) != 0).any(axis=1)


@pytest.mark.parametrize("changes", [dict(), dict(num_encoder_layers=0)])
def test_causality_through_gradients(changes):
  """Ids 0-5 stand in the text, each once; 6-10 in the inputs; 11 nowhere."""
  config, params = toy_models.tiny_t5(0, **changes)
  text, inputs = jnp.arange(6)[None], jnp.arange(6, 11)[None]
  for place in (0, 3, 5):
    seen = gradients_by_token(config, params, inputs, text, place)
    np.testing.assert_array_equal(seen[:6], np.arange(6) <= place)
    np.testing.assert_array_equal(seen[6:11], not config.decoder_only)
    assert not seen[11:].any()


def test_padding_of_the_inputs_changes_nothing():
  """As long as bias tables are shared, whatever the width and the batch."""
  config, params = toy_models.tiny_t5(0)
  apply = jax.jit(network.build(config).apply)
  text, inputs = tokens(0, 4, 6), tokens(1, 4, 8)
  inputs = jnp.where(jnp.arange(8) < jnp.array([[8], [3], [5], [1]]), inputs, 0)
  narrow = apply({"params": params}, inputs, text, text)
  wide = jnp.pad(inputs, ((0, 0), (0, 8)))
  np.testing.assert_allclose(
      apply({"params": params}, wide, text, text), narrow, atol=1e-5
  )
  for row in range(4):
    length = int((inputs[row] > 0).sum())
    one = slice(row, row + 1)
    alone = apply(
        {"params": params}, inputs[one, :length], text[one], text[one]
    )
    np.testing.assert_allclose(alone, narrow[one], atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_inputs_of_nothing_but_padding_make_no_nan(dtype):
  config, params = toy_models.tiny_t5(0, dtype=dtype)
  scorer = network.T5Scorer(config)
  context = scorer.start(params, jnp.zeros((1, 3), "int32"))
  logits, _ = scorer.extend(
      params,
      context,
      scorer.init_cache(1, 4),
      tokens(0, 1, 2),
      jnp.zeros(1, int),
  )
  assert np.isfinite(logits).all()


def test_one_module_for_one_configuration():
  config = toy_models.tiny_config()
  assert network.build(config) is network.build(toy_models.tiny_config())
  assert isinstance(network.build(config), network.Transformer)
  only = toy_models.tiny_config(num_encoder_layers=0)
  assert isinstance(network.build(only), network.DecoderOnly)


def test_dropout_needs_a_key_and_acts():
  config, params = toy_models.tiny_t5(0, dropout_rate=0.5)
  text = tokens(0, 1, 4)
  apply = lambda **of: network.build(config).apply(
      {"params": params}, text, text, text, **of
  )
  noisy = apply(enable_dropout=True, rngs={"dropout": jax.random.key(0)})
  assert np.abs(noisy - apply()).max() > 0.1

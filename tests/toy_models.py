"""Models small enough to be reasoned about: tables, scripts, tiny T5s."""

import dataclasses
import functools
import itertools

import jax
import numpy as np
from jax import numpy as jnp

from spec_t5x import decoding, network, packing
from spec_t5x.decoding_types import Models, Rows, Settings, Weights
from spec_t5x.drafts.model import ModelDraft
from spec_t5x.law import Sampling
from spec_t5x.texts import read_block
from spec_t5x.types import EOS_ID, Proposal

# Stands in every buffer before anything is written there.
GARBAGE = 1_000_003
# Compiles quickly, not well.
_QUICK = {"xla_backend_optimization_level": 0}


@dataclasses.dataclass(frozen=True)
class TableScorer:
  """Implements `types.Scorer`: logits are looked up by the whole prefix.

  The parameters are a table [texts, rows, vocab]; the first input id of a row
  says which text it is. A cache holds the tokens that were read, so a token
  read at a wrong place, or not at all, leads to other logits.
  """

  vocab_size: int

  def start(self, params, inputs):
    del params
    return inputs[:, 0]

  def init_cache(self, batch, length):
    return jnp.full((batch, length), GARBAGE, "uint32")

  def extend(self, params, context, cache, tokens, index, only=None):
    write = lambda row, block, at: jax.lax.dynamic_update_slice(
        row, block, (at,)
    )
    cache = jax.vmap(write)(cache, tokens.astype("uint32"), index)
    places = index[:, None] + jnp.arange(tokens.shape[1])
    codes = prefix_codes(cache[:, 1:], self.vocab_size)
    codes = jnp.take_along_axis(codes, places, axis=1) % params.shape[1]
    if only is not None:
      codes = jnp.take_along_axis(codes, only[:, None], axis=1)
    return params[context[:, None], codes], cache


def prefix_codes(tokens, vocab_size):
  """Code [..., length + 1] of every prefix; one to one while it fits.

  Args:
    tokens: [..., length], BOS not included.
    vocab_size: size of the vocabulary.
  """
  places = np.arange(tokens.shape[-1], dtype="uint32")
  powers = np.power(np.uint32(vocab_size + 1), places)
  digits = (tokens.astype("uint32") + 1) * powers
  padding = [(0, 0)] * (tokens.ndim - 1) + [(1, 0)]
  return jnp.pad(jnp.cumsum(digits, axis=-1, dtype="uint32"), padding)


def table_of(laws, vocab_size, depth):
  """Logits for a `TableScorer` of one text, exact up to `depth` tokens.

  Args:
    laws: function of a prefix, a tuple of tokens, to probabilities [vocab].
    vocab_size: size of the vocabulary.
    depth: tokens of the longest prefix that is looked up.
  """
  table = np.zeros((1, (vocab_size + 1) ** depth, vocab_size), "float32")
  for length in range(depth + 1):
    for prefix in itertools.product(range(vocab_size), repeat=length):
      code = sum((t + 1) * (vocab_size + 1) ** i for i, t in enumerate(prefix))
      with np.errstate(divide="ignore"):
        table[0, code] = np.log(np.asarray(laws(prefix), "float64"))
  return jnp.asarray(table)


def table_of_scripts(scripts, vocab_size, seed=0):
  """Logits by which each text follows a script, and is random off it.

  Args:
    scripts: tokens [texts, length].
    vocab_size: size of the vocabulary.
    seed: of the random part.
  """
  scripts = np.asarray(scripts)
  texts, length = scripts.shape
  rng = np.random.default_rng(seed)
  table = rng.normal(size=(texts, 16381, vocab_size)).astype("float32")
  codes = np.asarray(prefix_codes(scripts, vocab_size)) % table.shape[1]
  for text in range(texts):
    assert len(set(codes[text])) == length + 1
    table[text, codes[text, :-1], scripts[text]] = 100.0
  return jnp.asarray(table)


@dataclasses.dataclass(frozen=True)
class ScriptedDraft:
  """Implements `types.Draft`: the token for a position is in the parameters.

  The parameters are the tokens [batch, length], BOS not included, of each
  row; a proposal is a point mass.
  """

  gamma: int

  def start(self, params, inputs):
    del inputs
    return params

  def init_cache(self, batch, length):
    del batch, length
    return ()

  def prefill(self, params, context, cache, tokens):
    del params, context, tokens
    return cache

  def propose(self, params, context, cache, tokens, index, law, bits):
    del params, law, bits
    script = jnp.pad(context, ((0, 0), (0, self.gamma)))
    return (
        Proposal(
            read_block(script, index, self.gamma).astype(tokens.dtype), None
        ),
        cache,
    )


@dataclasses.dataclass(frozen=True)
class PointDraft(ModelDraft):
  """Proposes its scorer's most probable tokens, as point masses."""

  def propose(self, params, context, cache, tokens, index, law, bits):
    greedy = dataclasses.replace(law.sampling, greedy=True)
    law = law.replace(sampling=greedy)
    return super().propose(params, context, cache, tokens, index, law, bits)


@dataclasses.dataclass(frozen=True)
class AdaptiveDraft(ModelDraft):
  """Stops when it has drafted token 2 or 3, and counts that token.

  Attributes:
    dropped: tokens not counted though looked at; any but 0 is wrong.
  """

  dropped: int = 0

  def propose(self, *arguments):
    proposal, cache = super().propose(*arguments)
    stop = (proposal.tokens == 2) | (proposal.tokens == 3)
    stopped = stop.argmax(axis=1) + 1 - self.dropped
    num_drafted = jnp.where(stop.any(axis=1), stopped, self.gamma)
    return proposal._replace(num_drafted=num_drafted), cache


def tiny_config(**changes):
  """A T5 of two layers, 16 ids and few parameters."""
  sizes = dict(
      vocab_size=16,
      emb_dim=16,
      num_heads=2,
      head_dim=8,
      mlp_dim=24,
      num_encoder_layers=2,
      num_decoder_layers=2,
      relpos_num_buckets=8,
      relpos_max_distance=16,
  )
  return network.T5Config(**{**sizes, **changes})


@functools.cache
def _init(config):
  tokens = jnp.ones((1, 4), "int32")
  arguments = (tokens,) * (2 if config.decoder_only else 3)
  init = network.build(config).init
  return jax.jit(
      lambda key: init(key, *arguments)["params"], compiler_options=_QUICK
  )


def tiny_t5(seed, pack=False, eos_scale=1.0, **changes):
  """A random T5 with a strong relative bias and decided logits.

  A bias that is dropped or taken at another position then changes the logits
  a lot; a fresh T5's law would be flat.

  Args:
    seed: of the parameters.
    pack: whether to return the `decode` layout.
    eos_scale: factor of the logits of EOS; more than 1 ends more texts.
    **changes: fields of `T5Config`.

  Returns:
    Configuration and parameters.
  """
  config = tiny_config(**changes)

  def scale(path, value):
    names = jax.tree_util.keystr(path)
    if "rel_embedding" in names:
      return 3.0 * value
    if "logits_dense" in names:
      return 4.0 * value.at[:, EOS_ID].multiply(eos_scale)
    return value

  params = _init(config)(jax.random.key(seed))
  params = jax.tree_util.tree_map_with_path(scale, params)
  return packing.pack(config, params) if pack else (config, params)


@jax.jit
def noisy(params, seed, amount):
  """A copy with noise: a draft that agrees with its target now and then."""
  leaves, tree = jax.tree.flatten(params)
  keys = jax.random.split(jax.random.key(seed), len(leaves))
  noise = lambda x, key: x + amount * jax.random.normal(key, x.shape) * x.std()
  return tree.unflatten(map(noise, leaves, keys))


def model_pair(target, draft=None, gamma=0):
  """`Models` and `Weights` of (scorer, params) pairs."""
  if draft is None:
    return Models(target[0]), Weights(target[1])
  return (
      Models(target[0], ModelDraft(draft[0], gamma)),
      Weights(target[1], draft[1]),
  )


@functools.cache
def _compiled(models, settings):
  return jax.jit(
      functools.partial(decoding.decode, models, settings),
      compiler_options=_QUICK,
  )


def run(models, settings, weights, inputs, rows):
  """Decodes; compiled quickly, not well."""
  inputs = jnp.asarray(inputs, "int32")
  return jax.device_get(_compiled(models, settings)(weights, inputs, rows))


def settings(max_length, vocab_size, greedy=False, **changes):
  """Loop settings; `changes` are fields of `Settings` or `Sampling`."""
  names = {field.name for field in dataclasses.fields(Sampling)}
  law = {name: changes.pop(name) for name in names & changes.keys()}
  law = {"num_ids": vocab_size, **law}
  return Settings(max_length, Sampling(greedy=greedy, **law), **changes)


def rows(batch, limit, temperature=1.0, prompt=None, seed=0):
  """`Rows` of one limit and one temperature, or one of each per row."""
  if prompt is None:
    prompt = np.zeros((batch, 0), "int32")
  return Rows(
      prompt=jnp.asarray(prompt, "int32"),
      limit=jnp.broadcast_to(jnp.asarray(limit, "int32"), (batch,)),
      temperature=jnp.broadcast_to(
          jnp.asarray(temperature, "float32"), (batch,)
      ),
      keys=jax.random.split(jax.random.key(seed), batch),
  )

"""Decodes on eight virtual CPU devices; run by `partitioning_test.py`.

The number of devices is fixed when JAX starts, so this is a program of its
own. It writes what it saw to a JSON file and judges nothing.

  python mesh_worker.py <directory> <case> <case> ...

where a case is mode:shape:draft, for example greedy:2x4:sharded.
"""

import json
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np

from spec_t5x import checkpoints, partitioning
from spec_t5x.checkpoints import layout
from spec_t5x.config import T5Config
from spec_t5x.decoder import Decoder
from spec_t5x.model import Model, load
from spec_t5x.network import T5Scorer
from spec_t5x.shortlist import shorten

TARGET = T5Config(48, 32, 8, 4, 64, 1, 1)
# Four heads, of no use to eight devices. Another padding of the vocabulary.
DRAFT = T5Config(40, 16, 4, 4, 32, 1, 1)
# One input short of what every mesh divides.
TEMPERATURES = {"greedy": 0.0, "mixed": [0.0, 1.0, 1.0, 0.0, 0.7]}
TEXTS = [[*range(2, 2 + size), 1] for size in (3, 9, 5, 1, 7)]


def make_model(name, config, seed):
  rng = np.random.default_rng(seed)
  params = {
      path: rng.normal(0, shape[0] ** -0.5, shape).astype("float32")
      for path, shape in layout.parameter_shapes(config).items()
  }
  return Model(name, config, layout.unflatten(params))


def make_mesh(shape):
  return partitioning.make_mesh(*map(int, shape.split("x")))


def decode(target, draft, case):
  """Tokens and acceptances of a case, as lists."""
  mode, shape, draft_sharding = case.split(":")
  settings = {}
  if draft_sharding == "shortened":
    draft, draft_sharding = shorten(draft, range(1, 25)), "sharded"
  if shape != "1":
    settings["mesh"] = make_mesh(shape)
    if draft_sharding != "none":
      settings["draft_sharding"] = draft_sharding
  decoder = Decoder(
      target,
      None if draft_sharding == "none" else draft,
      gamma=2,
      temperature=TEMPERATURES[mode],
      max_decode_steps=12,
      num_decodes=2,
      **settings,
  )
  result = decoder(TEXTS)
  return {
      "tokens": result.tokens.tolist(),
      "accepted": [list(row.accept_counts) for row in result.per_decode],
  }


def part_shape(array):
  """Shape of what one device holds."""
  return array.addressable_shards[0].data.shape


def cache_part(target, mesh, rules):
  """Shape of one device's part of a buffer, after a block was written."""
  scorer = T5Scorer(target.config, rules)
  params = partitioning.place(target.config, target.params, mesh, rules)

  @jax.jit
  def extend(params, ids):
    context = scorer.start(params, ids)
    cache = scorer.init_cache(4, 6)
    index = jnp.zeros(4, "int32")
    return scorer.extend(params, context, cache, ids, index)[1]

  ids = jax.device_put(
      np.ones((4, 3), "int32"), partitioning.batch_sharding(mesh)
  )
  with partitioning.on_mesh(mesh):
    return part_shape(extend(params, ids)[0].keys)


def loaded_parts(target, mesh, directory):
  """What one device holds of a checkpoint that was loaded onto a mesh."""
  checkpoints.save_hugging_face(
      directory, target.config, target.params, "float32"
  )
  params = load(directory, mesh=mesh).params
  equal = jax.tree.map(
      lambda a, b: bool((np.asarray(a) == b).all()), params, target.params
  )
  attention = params["decoder"]["layers_0"]["self_attention"]
  return {
      "equal": all(jax.tree.leaves(equal)),
      "embedding": part_shape(params["token_embedder"]["embedding"]),
      "query": part_shape(attention["query"]["kernel"]),
      "out": part_shape(attention["out"]["kernel"]),
      "norm": part_shape(params["decoder"]["decoder_norm"]["scale"]),
  }


def error_of(function, *args, **kwargs):
  try:
    function(*args, **kwargs)
  except ValueError as error:
    return str(error)
  return "no error"


def errors(target, draft):
  """Messages of calls that must fail."""
  mesh = make_mesh("1x8")
  packed = T5Config(48, 32, 8, 4, 64, 1, 1, packed=True)
  odd = T5Config(42, 32, 8, 4, 64, 1, 1)
  explicit = jax.make_mesh(
      (2, 4), ("data", "model"), (jax.sharding.AxisType.Explicit,) * 2
  )
  on_mesh = lambda config, mesh: error_of(
      partitioning.param_shardings, config, mesh
  )
  with_draft = lambda how: error_of(
      Decoder, target, draft, mesh=mesh, draft_sharding=how
  )
  return {
      "devices": error_of(partitioning.make_mesh, 3, 2),
      "negative": error_of(partitioning.make_mesh, -2, -4),
      "vocab": on_mesh(odd, mesh),
      "packed": on_mesh(packed, mesh),
      "axis types": on_mesh(target.config, explicit),
      "heads": with_draft("sharded"),
      "draft_sharding": with_draft("split"),
  }


def main(directory, *cases):
  directory = pathlib.Path(directory)
  target = make_model("target", TARGET, 0)
  draft = make_model("draft", DRAFT, 1)
  mesh = make_mesh("2x4")
  seen = {
      "decoded": {case: decode(target, draft, case) for case in cases},
      "cache": cache_part(target, mesh, partitioning.AXIS_RULES),
      "replicated cache": cache_part(
          target, mesh, partitioning.REPLICATED_RULES
      ),
      "loaded": loaded_parts(target, mesh, directory / "model"),
      "errors": errors(target, draft),
  }
  (directory / "seen.json").write_text(json.dumps(seen))


if __name__ == "__main__":
  main(*sys.argv[1:])

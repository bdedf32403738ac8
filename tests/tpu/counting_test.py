"""Tests of counted bytes and operations, by hand on small models."""

import dataclasses

import jax
import pytest

from spec_t5x import network
from spec_t5x.config import T5Config
from spec_t5x.tpu import counting
from spec_t5x.tpu.counting import Work

HEADS, HEAD, EMBED, MLP, VOCAB, LAYERS = 2, 4, 16, 24, 32, 3
LENGTH, INPUTS = 10, 6
CONFIG = T5Config(
    vocab_size=VOCAB,
    emb_dim=EMBED,
    num_heads=HEADS,
    head_dim=HEAD,
    mlp_dim=MLP,
    num_encoder_layers=LAYERS,
    num_decoder_layers=LAYERS,
    dtype="bfloat16",
)
JOINED, ITEM = HEADS * HEAD, 2
# query, key, value and out; query and out to the inputs; wi_0, wi_1, wo.
KERNELS = 6 * EMBED * JOINED + 3 * EMBED * MLP


def hand_count(block):
  """What `extend` does, written down from the model's definition."""
  attended = LENGTH + INPUTS
  products = LAYERS * (KERNELS + 2 * JOINED * attended) + EMBED * VOCAB
  norms = (3 * LAYERS + 1) * EMBED
  # Distances on both sides of all keys, or of the last bucket.
  bias = HEADS * (2 * max(LENGTH, CONFIG.relpos_max_distance) + 1)
  weights = LAYERS * KERNELS + norms + EMBED * VOCAB + block * EMBED + bias
  caches = LAYERS * 2 * JOINED * (attended + block) + INPUTS
  # Six projections, two of them of width EMBED; scores and values of both
  # attentions; the feed-forward. Logits are float32.
  narrow = 4 * JOINED + 2 * EMBED + HEADS * attended + 2 * JOINED
  results = LAYERS * (narrow + 2 * MLP + EMBED)
  return Work(
      flops=2 * block * products,
      weight_bytes=ITEM * weights,
      cache_bytes=ITEM * caches,
      activation_bytes=2 * block * (ITEM * results + 4 * VOCAB),
  )


@pytest.mark.parametrize("block", [1, 4])
def test_extend_as_by_hand(block):
  counted = counting.extend_work(CONFIG, block, LENGTH, INPUTS)
  assert counted == hand_count(block)


def test_start_as_by_hand():
  encoder = 4 * EMBED * JOINED + 3 * EMBED * MLP + 2 * JOINED * INPUTS
  projections = 2 * EMBED * JOINED
  counted = counting.start_work(CONFIG, INPUTS)
  assert counted.flops == 2 * INPUTS * LAYERS * (encoder + projections)


def test_layers_beyond_the_second_are_like_it():
  """One trace of the whole model counts the same."""
  config = dataclasses.replace(CONFIG, num_encoder_layers=1)
  scorer = network.T5Scorer(config)
  params = counting.abstract_params(config)
  ids = jax.ShapeDtypeStruct((1, INPUTS), "int32")
  whole = counting._count(scorer.start, params, ids)
  assert counting.start_work(config, INPUTS) == whole


def test_the_compiler_counts_the_same_products():
  """Its count also holds what is done element by element, hence the margin."""
  scorer = network.T5Scorer(CONFIG)
  params = counting.abstract_params(CONFIG)
  ids = jax.ShapeDtypeStruct((1, 64), "int32")
  lowered = jax.jit(scorer.start).lower(params, ids)
  counted = counting.start_work(CONFIG, 64).flops
  assert counted < lowered.cost_analysis()["flops"] < 1.5 * counted


def test_a_part_of_a_model_does_its_part():
  whole = counting.extend_work(CONFIG, 1, LENGTH, INPUTS)
  half = counting.extend_work(counting.shard(CONFIG, 2), 1, LENGTH, INPUTS)
  assert 2 * half.flops == whole.flops
  # Norms and the row of the embedding are on every device.
  replicated = ITEM * ((3 * LAYERS + 1) * EMBED + EMBED)
  assert 2 * half.weight_bytes == whole.weight_bytes + replicated


def test_parts_that_do_not_divide():
  with pytest.raises(
      ValueError, match="`num_heads` must be divisible by 3 devices. Got 2."
  ):
    counting.shard(CONFIG, 3)


def test_bytes_are_the_sum():
  assert Work(1, 20, 300, 4000).bytes == 4320

"""Tests of distillation: the texts are the target's, and whole."""

import json

import pytest
from toy_training import CONFIG, make_data

from spec_t5x import checkpoints, distill, train
from spec_t5x.decoder import Decoder
from spec_t5x.model import load

pytestmark = pytest.mark.usefixtures("quick_compilation")

SETTINGS = dict(
    temperature=1.0,
    num_decodes=2,
    max_decode_steps=10,
    batch_size=16,
    seed=5,
)


@pytest.fixture(scope="module")
def target(tmp_path_factory):
  """Directory of a random target, whose texts are of all lengths."""
  directory = tmp_path_factory.mktemp("distill") / "target"
  params = train.init_params(CONFIG, 0)
  # A fresh T5's law is nearly flat; EOS is made likely.
  embedding = params["token_embedder"]["embedding"]
  params["token_embedder"]["embedding"] = embedding.at[1].multiply(3.0)
  checkpoints.save_hugging_face(directory, CONFIG, params, "float32")
  return str(directory)


@pytest.fixture(scope="module")
def distilled(target, tmp_path_factory):
  """(directory, data) of a first call."""
  directory = tmp_path_factory.mktemp("texts")
  return directory, distill.distill(make_data(), target, directory, **SETTINGS)


def test_texts_are_the_targets(target, distilled):
  decoder = Decoder(
      load(target),
      temperature=1.0,
      num_decodes=2,
      max_decode_steps=10,
      seed=5,
  )
  sources = [source for source, _ in make_data().train]
  tokens = decoder([[*source, 1] for source in sources]).tokens
  texts = [
      (source, row[: row.index(1)])
      for source, decodes in zip(sources, tokens.tolist(), strict=True)
      for row in decodes
      if 1 in row and 0 not in row[: row.index(1)]
  ]
  assert distilled[1].train == texts
  # Of 32 texts some are left out, and the others are not all empty.
  assert 5 < len(texts) < 32
  assert sum(bool(text) for _, text in texts) > 3


def test_held_out_pairs_and_batches_stay(distilled):
  data = make_data()
  assert distilled[1].validation == data.validation
  assert distilled[1].buckets == data.buckets


def test_further_calls_decode_nothing(target, distilled, monkeypatch):
  def fail(*args, **kwargs):
    raise AssertionError("decoded again")

  monkeypatch.setattr(Decoder, "__call__", fail)
  again = distill.distill(make_data(), target, distilled[0], **SETTINGS)
  assert again == distilled[1]


def test_other_arguments_are_refused(target, distilled):
  with pytest.raises(ValueError, match="`seed` was 5 and is 6"):
    distill.distill(
        make_data(), target, distilled[0], **{**SETTINGS, "seed": 6}
    )


def test_sources_get_eos(tmp_path):
  distill.write_sources(tmp_path / "in.jsonl", [[5, 6], []])
  lines = (tmp_path / "in.jsonl").read_text().splitlines()
  assert [json.loads(line)["tokens"] for line in lines] == [[5, 6, 1], [1]]


def test_outputs_that_teach_nothing_are_left_out(tmp_path):
  records = [
      {"input": [5, 1], "tokens": [7, 8, 1]},
      {"input": [6, 1], "tokens": [7, 8, 9]},
      {"input": [7, 1], "tokens": [[3, 1], [3, 0, 1], [3, 3, 3], [1]]},
  ]
  path = tmp_path / "out.jsonl"
  path.write_text("".join(json.dumps(record) + "\n" for record in records))
  assert distill.read_outputs(path) == [
      ([5], [7, 8]),
      ([7], [3]),
      ([7], []),
  ]


def test_batches_hold_the_targets_texts(distilled):
  batch = next(distilled[1].train_batches(0))
  texts = {tuple(text) for _, text in distilled[1].train}
  rows = batch["decoder_target_tokens"]
  assert {tuple(row[row > 1].tolist()) for row in rows} <= texts

"""A shortened draft: other logits, the same texts and laws.

That verification keeps the target's law with a draft that has zeros is proved
by enumeration in `decoding_law_test.py`; here it is shown for the laws of
models. Sampled texts with such a draft are in `shipped_law_test.py`.
"""

import subprocess
import sys

import jax
import numpy as np
import pytest
import toy_decoder
import toy_models
from jax import numpy as jnp

import spec_t5x
from spec_t5x import (
    acceptance,
    corpora,
    network,
    packing,
    provenance,
    shortlist,
)
from spec_t5x.checkpoints import layout
from spec_t5x.decode_job import DecodeJob
from spec_t5x.draft import find_draft, load_draft
from spec_t5x.model import Model

LAYERS = dict(num_encoder_layers=1, num_decoder_layers=1)
IDS = [7, 1, 12, 3]
TEXTS = [[5, 9, 3, 1], [8, 1], [2, 14, 6, 11, 4, 1]]


def tiny(seed=0, **changes):
  config, params = toy_models.tiny_t5(seed, **{**LAYERS, **changes})
  return Model(f"tiny {seed}", config, params)


def logits(config, params):
  """Of four tokens in each of three rows."""
  scorer = network.T5Scorer(config)
  inputs, text = jnp.asarray([[5, 1], [6, 1], [7, 1]]), jnp.ones((3, 4), int)

  @jax.jit
  def read(params):
    context, cache = scorer.start(params, inputs), scorer.init_cache(3, 6)
    index = jnp.array([0, 2, 1])
    return scorer.extend(params, context, cache, text, index)[0]

  return np.asarray(read(params))


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        dict(),
        dict(num_encoder_layers=0),
        dict(num_encoder_layers=0, logits_via_embedding=True),
        dict(logits_via_embedding=True),
        dict(dtype="bfloat16"),
    ],
)
def test_listed_tokens_keep_their_logits(changes, pack):
  model = tiny(**changes)
  draft = shortlist.shorten(model, IDS)
  laid_out = packing.pack if pack else lambda *model: model
  found = logits(*laid_out(draft.config, draft.params))
  whole = logits(*laid_out(model.config, model.params))
  np.testing.assert_allclose(found[..., IDS], whole[..., IDS], atol=1e-5)
  others = np.delete(np.arange(model.config.vocab_size), IDS)
  assert (found[..., others] == -np.inf).all()
  assert found.dtype == np.float32
  # The model is as it was.
  assert "shortlist" not in model.params["decoder"]


@pytest.mark.parametrize("gamma", [1, 3, 6])
@pytest.mark.parametrize("ids", [IDS, [7, 12]], ids=["with EOS", "without"])
def test_greedy_texts_are_the_targets(gamma, ids):
  target = tiny(0, eos_scale=2.0)
  draft = shortlist.shorten(tiny(1, eos_scale=2.0), ids)
  decode = lambda *draft: spec_t5x.Decoder(
      target, *draft, gamma=gamma, max_decode_steps=12
  )(TEXTS)
  found = decode(draft)
  np.testing.assert_array_equal(found.tokens, decode().tokens)
  # Its own proposals are accepted where they are listed, and only there.
  own = decode(shortlist.shorten(target, ids))
  np.testing.assert_array_equal(own.tokens, found.tokens)
  for row, counts in zip(own.tokens, own.per_decode, strict=True):
    assert sum(counts.position_accepted) <= np.isin(row, ids).sum()


def test_the_law_is_the_targets():
  """One token, in closed form; and what is lost without the residual."""
  target = tiny(0)
  draft = shortlist.shorten(tiny(1), IDS)
  softmax = lambda model: np.asarray(
      jax.nn.softmax(logits(model.config, model.params), axis=-1)
  ).reshape(-1, model.config.vocab_size)
  for p, q in zip(softmax(target), softmax(draft), strict=True):
    accepted = np.minimum(p, q)
    residual = np.asarray(acceptance.residual_probs(p, q))
    emitted = accepted + (1 - accepted.sum()) * residual
    np.testing.assert_allclose(emitted, p, atol=1e-6)
    # Control: drawn again from the draft, unlisted tokens never appear.
    wrong = accepted + (1 - accepted.sum()) * q
    assert np.abs(wrong - p).max() > 1e-2


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([], "at least one token id"),
        ([[3], [4]], "at least one token id"),
        ([3, 0], "from 1 to 15. Got 0"),
        ([3, 16], "from 1 to 15. Got 16"),
        ([3, 5, 3], "must not name a token twice. Got 3 2 times"),
    ],
)
def test_bad_lists(ids, message):
  with pytest.raises(ValueError, match=message):
    shortlist.shorten(tiny(), ids)


def test_only_drafts_are_shortened_and_once():
  draft = shortlist.shorten(tiny(), IDS)
  with pytest.raises(ValueError, match="`target` must have logits for all"):
    spec_t5x.Decoder(draft)
  with pytest.raises(ValueError, match="must not be shortened already"):
    shortlist.shorten(draft, IDS)
  with pytest.raises(ValueError, match="`config.shortlist` must be 0"):
    layout.parameter_shapes(draft.config)


def test_commonest():
  texts = [[5, 3, 3, 1], [3, 9, 1]]
  assert shortlist.commonest(texts, 3) == [3, 1, 5]
  assert shortlist.commonest(texts, 99) == [3, 1, 5, 9]
  with pytest.raises(ValueError, match="`size` must be at least 1. Got 0"):
    shortlist.commonest(texts, 0)


def test_files(tmp_path):
  path = shortlist.save([5, 1, 9], tmp_path / "new" / "list.txt")
  assert path.read_text() == "5\n1\n9\n"
  assert shortlist.load(path) == [5, 1, 9]
  path.write_text("5\nx\n")
  with pytest.raises(ValueError, match="each line. Got 'x' in line 2 of"):
    shortlist.load(path)
  with pytest.raises(FileNotFoundError, match="There is no shortlist"):
    shortlist.load(tmp_path / "none")
  with pytest.raises(FileNotFoundError, match="Shipped are .'ende', 'summ'."):
    shortlist.find("shipped:none")


@pytest.mark.parametrize(
    "name", ["shortlist:a", "shortlist:a+", "shortlist:+b"]
)
def test_bad_names(name):
  with pytest.raises(ValueError, match="must be 'shortlist:FILE.MODEL'"):
    load_draft(name)


@pytest.mark.parametrize(("task", "size"), [("ende", 3072), ("summ", 4096)])
def test_shipped_lists_are_those_of_the_corpora(task, size, tmp_path):
  path = tmp_path / "list.txt"
  done = subprocess.run(
      [sys.executable, "scripts/build_shortlist.py", f"--task={task}"]
      + [f"--size={size}", f"--output={path}"],
      check=True,
      capture_output=True,
      text=True,
  )
  assert f"{size:,} tokens, 9" in done.stdout
  assert path.read_bytes() == shortlist.find(f"shipped:{task}").read_bytes()
  # Nearly all that held-out texts are written with.
  pieces = spec_t5x.load("shipped:small").vocabulary
  pairs = corpora.load_pairs(task, "test")
  ids = np.concatenate([pieces.encode(pair.target) for pair in pairs])
  assert np.isin(ids, shortlist.load(path)).mean() > 0.95


def test_job_with_a_list(tmp_path):
  directory = toy_decoder.save_model(tmp_path / "target")
  path = shortlist.save(range(1, 4000), tmp_path / "list.txt")
  (tmp_path / "in.txt").write_text("Open the file.\nClose the window.\n")
  written = []
  for number, draft in enumerate([None, f"shortlist:{path}+{directory}"]):
    job = DecodeJob(
        str(directory),
        draft,
        str(tmp_path / "in.txt"),
        str(tmp_path / f"out{number}"),
        max_decode_steps=6,
    )
    job.run()
    lines = (tmp_path / f"out{number}").read_text().splitlines()
    written.append([line[: line.index("log_prob")] for line in lines])
  assert written[0] == written[1]


def test_a_list_is_part_of_a_drafts_hash(tmp_path):
  directory = toy_decoder.save_model(tmp_path / "draft")
  hashes = set()
  for ids in ([1, 5], [1, 6]):
    path = shortlist.save(ids, tmp_path / "list.txt")
    found = find_draft(f"shortlist:{path}+{directory}")
    assert found == (path, directory)
    hashes.add(provenance.weights_hash(*found))
  hashes.add(provenance.weights_hash(directory))
  assert len(hashes) == 3

"""Tests of everything that `Decoder` takes as a draft, and of its names."""

import numpy as np
import pytest
import toy_decoder

import spec_t5x
from spec_t5x.decode_job import DecodeJob
from spec_t5x.draft import find_draft, is_model, load_draft
from spec_t5x.drafts import NgramTable, PromptLookup

TEXTS = ["Open the file.", "Close the file and the window."]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
  return toy_decoder.save_model(tmp_path_factory.mktemp("models") / "target")


@pytest.fixture(scope="module")
def target(directory):
  return spec_t5x.load(directory)


@pytest.fixture(scope="module")
def table():
  rng = np.random.default_rng(0)
  return NgramTable.build([[*rng.integers(2, 90, 60), 1]], 3, 8000)


@pytest.mark.parametrize("kind", ["model", "ngram", "lookup"])
def test_each_decodes_the_targets_tokens(target, table, kind):
  draft = dict(model=target, ngram=table, lookup=PromptLookup(2))[kind]
  plain = spec_t5x.Decoder(target, max_decode_steps=10)(TEXTS)
  decoder = spec_t5x.Decoder(target, draft, gamma=3, max_decode_steps=10)
  np.testing.assert_array_equal(decoder(TEXTS).tokens, plain.tokens)
  assert decoder.gamma == 3


def test_sampling_repeats_by_seed(target, table):
  decode = lambda seed: spec_t5x.Decoder(
      target, table, temperature=1.0, max_decode_steps=6, seed=seed
  )(TEXTS).tokens
  np.testing.assert_array_equal(decode(0), decode(0))
  assert (decode(0) != decode(1)).any()


def test_other_sizes_are_refused(target):
  table = NgramTable.build([[5, 1]], 1, 7000)
  with pytest.raises(
      ValueError, match="`draft` must have the target's vocabulary, 8000 ids"
  ):
    spec_t5x.Decoder(target, table)


def test_other_types_are_refused(target):
  with pytest.raises(ValueError, match="a PromptLookup or None. Got str"):
    spec_t5x.Decoder(target, "lookup")


def test_names(directory, table, tmp_path):
  path = table.save(tmp_path / "table")
  assert load_draft("lookup") == PromptLookup()
  assert load_draft("lookup:5") == PromptLookup(5)
  assert load_draft(f"ngram:{path}").order == 3
  assert load_draft(directory).config == toy_decoder.CONFIG
  assert find_draft("lookup:5") == ()
  assert find_draft(f"ngram:{path}") == (path,)
  assert find_draft(directory) == (directory,)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("lookup:x", ValueError, "a number of tokens for N. Got 'lookup:x'"),
        ("lookup:0", ValueError, "`max_ngram` must be an integer, at least 1"),
        ("ngram:none", FileNotFoundError, "There is no n-gram table none"),
    ],
)
def test_bad_names(name, error, message):
  with pytest.raises(error, match=message):
    load_draft(name)


def test_job_with_a_table(directory, table, tmp_path):
  path = table.save(tmp_path / "table")
  (tmp_path / "in.txt").write_text("\n".join(TEXTS))
  written = []
  for number, draft in enumerate([None, f"ngram:{path}", "lookup:2"]):
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
  assert written[0] == written[1] == written[2]


def test_only_models_are_called_models():
  assert is_model("shipped:small")
  assert is_model("path/to/lookup_draft")
  assert is_model("shortlist:shipped:ende+shipped:small")
  assert not is_model("ngram:path/to/file")
  assert not is_model("lookup")
  assert not is_model("lookup:3")

"""Tests of the shipped corpora: what is in them, and that no split leaks."""

import hashlib
import importlib.resources
import itertools
import lzma

import pytest

from spec_t5x import corpora

DATA = importlib.resources.files("spec_t5x") / "data"


@pytest.mark.parametrize(
    ("task", "split", "source_prefix", "num_pairs"),
    [
        ("ende", "train", None, 37280),
        ("ende", "validation", None, 808),
        ("ende", "test", None, 825),
        ("ende", "test", "lohelp:", 729),
        ("ende", "test", "gnomehelp:", 96),
        ("summ", "train", None, 33589),
        ("summ", "validation", None, 860),
        ("summ", "test", None, 873),
        ("english", "train", None, 70869),
        ("english", "validation", None, 1668),
        ("english", "test", None, 1698),
    ],
)
def test_number_of_pairs_is_that_of_the_notice(
    task, split, source_prefix, num_pairs
):
  pairs = corpora.load_pairs(task, split, source_prefix)
  assert len(pairs) == num_pairs
  assert all(p.origin.startswith(source_prefix or "") for p in pairs)
  assert f"{num_pairs:,}" in (DATA / "NOTICE.md").read_text("utf-8")


@pytest.mark.parametrize("name", ["ende.tsv.xz", "summ.tsv.xz", "spiece.model"])
def test_notice_gives_the_hashes_of_the_files(name):
  contents = [(DATA / name).read_bytes()]
  if name.endswith(".xz"):
    contents.append(lzma.decompress(contents[0]))
  notice = (DATA / "NOTICE.md").read_text("utf-8")
  row = next(x for x in notice.splitlines() if x.startswith(f"| `{name}`"))
  for content in contents:
    assert hashlib.sha256(content).hexdigest() in row


@pytest.mark.parametrize("task", corpora.PREFIXES)
def test_no_origin_and_no_source_text_is_in_two_splits(task):
  splits = [corpora.load_pairs(task, split) for split in corpora.SPLITS]
  for first, second in itertools.combinations(splits, 2):
    assert not {p.origin for p in first} & {p.origin for p in second}
    assert not {p.source for p in first} & {p.source for p in second}


@pytest.mark.parametrize("task", corpora.PREFIXES)
def test_every_pair_is_whole_and_starts_with_the_prefix(task):
  prefix = corpora.PREFIXES[task]
  for pair in corpora.load_pairs(task, "validation"):
    assert pair.source.startswith(prefix)
    assert len(pair.source) > len(prefix)
    assert pair.target.strip()
    assert not pair.target.startswith(prefix)


def test_prefixes_are_those_of_t5():
  assert corpora.PREFIXES == {
      "ende": "translate English to German: ",
      "summ": "summarize: ",
  }


def test_english_is_the_sources_without_their_prefixes():
  texts = corpora.load_pairs("english", "test")
  sources = [
      (pair.source.removeprefix(prefix), pair.origin)
      for task, prefix in corpora.PREFIXES.items()
      for pair in corpora.load_pairs(task, "test")
  ]
  assert [(text.target, text.origin) for text in texts] == sources
  assert not any(text.source for text in texts)


def test_no_english_text_is_in_two_splits():
  splits = [
      {pair.target for pair in corpora.load_pairs("english", split)}
      for split in corpora.SPLITS
  ]
  for first, second in itertools.combinations(splits, 2):
    assert not first & second


def test_translations_hold_no_package_descriptions():
  for split in corpora.SPLITS:
    for pair in corpora.load_pairs("ende", split):
      assert pair.origin.startswith(("lohelp:", "gnomehelp:"))


@pytest.mark.parametrize(
    ("origin", "split"),
    # md5sum of these, modulo 40, is 0, 1 and 17.
    [("deb:c", "test"), ("lohelp:36", "validation"), ("a", "train")],
)
def test_split_of_known_origins(origin, split):
  assert corpora.split_of(origin) == split


def test_bad_arguments_are_named():
  with pytest.raises(ValueError, match="`task` must be one of .*Got 'deen'"):
    corpora.load_pairs("deen", "train")
  with pytest.raises(ValueError, match="`split` must be one of .*Got 'dev'"):
    corpora.load_pairs("ende", "dev")
  with pytest.raises(ValueError, match="`source_prefix` must .*Got 'deb:'"):
    corpora.load_pairs("ende", "test", "deb:")

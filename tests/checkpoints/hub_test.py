"""Tests of finding weights, against a cache laid out as the hub's."""

import fnmatch
import os
import re

import huggingface_hub
import pytest
from huggingface_hub import constants

from spec_t5x import checkpoints
from spec_t5x.checkpoints import hub

NAME = "org/tiny-t5"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
  monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


@pytest.fixture
def cached(tmp_path, t5_1_1):
  """A cache that holds one sharded model; yields (cache, its snapshot)."""
  saved = checkpoints.save_hugging_face(
      tmp_path / "saved", *t5_1_1, "float32", max_shard_bytes=4000
  )
  model = tmp_path / "cache" / "models--org--tiny-t5"
  snapshot = model / "snapshots" / COMMIT
  for directory in (snapshot, model / "refs", model / "blobs"):
    directory.mkdir(parents=True)
  (model / "refs" / "main").write_text(COMMIT)
  for number, path in enumerate(sorted(saved.iterdir())):
    path.rename(model / "blobs" / f"{number:040x}")
    (snapshot / path.name).symlink_to(f"../../blobs/{number:040x}")
  return tmp_path / "cache", snapshot


def test_directory(tmp_path):
  assert hub.resolve(tmp_path) == tmp_path
  assert hub.resolve(os.fspath(tmp_path)) == tmp_path


def test_name_in_the_cache(cached, t5_1_1, same_params):
  cache, snapshot = cached
  assert hub.resolve(NAME, cache) == snapshot
  same_params(checkpoints.load_params(snapshot)[1], t5_1_1[1])


def test_t5_1_0_goes_by_its_last_name(cached):
  cache, _ = cached
  model = cache / "models--google-t5--t5-small"
  (cache / "models--org--tiny-t5").rename(model)
  assert hub.resolve("t5-small", cache) == model / "snapshots" / COMMIT
  with pytest.raises(FileNotFoundError, match="There is no directory t5-tiny"):
    hub.resolve("t5-tiny", cache)


def test_a_complete_copy_needs_no_network(cached, monkeypatch):
  cache, snapshot = cached
  calls = []
  original = huggingface_hub.snapshot_download

  def spy(*args, **kwargs):
    calls.append(kwargs["local_files_only"])
    return original(*args, **kwargs)

  monkeypatch.setattr(huggingface_hub, "snapshot_download", spy)
  assert hub.resolve(NAME, cache) == snapshot
  assert calls == [True]


@pytest.mark.parametrize(
    "lost", ["config.json", "model.safetensors.index.json", "model-00002*"]
)
def test_a_partial_copy_is_not_taken(cached, lost):
  cache, snapshot = cached
  next(snapshot.glob(lost)).unlink()
  message = f"`{NAME}` is no directory, is not complete in the cache"
  with pytest.raises(FileNotFoundError, match=message):
    hub.resolve(NAME, cache)


def test_a_partial_copy_is_completed(cached, monkeypatch):
  cache, snapshot = cached
  lost = snapshot / "config.json"
  content = lost.read_bytes()
  lost.unlink()

  def download(name, *, cache_dir, allow_patterns, local_files_only):
    assert (name, cache_dir) == (NAME, cache)
    if not local_files_only:
      lost.write_bytes(content)
    return str(snapshot)

  monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
  assert hub.resolve(NAME, cache) == snapshot


def test_unknown_name(cached):
  cache, _ = cached
  message = f"`org/other` .* in the cache {re.escape(str(cache))}"
  with pytest.raises(FileNotFoundError, match=message):
    hub.resolve("org/other", cache)


def test_default_cache(cached, monkeypatch):
  cache, snapshot = cached
  monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
  assert hub.resolve(NAME) == snapshot


@pytest.mark.parametrize("name", ["absent", "a/b/c", "/absent/x", "../x"])
def test_neither_path_nor_name(name, monkeypatch, tmp_path):
  monkeypatch.chdir(tmp_path)
  message = f"no directory {re.escape(name)}, and a hub name has the form"
  with pytest.raises(FileNotFoundError, match=message):
    hub.resolve(name)


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        ("config.json", True),
        ("model.safetensors", True),
        ("model-00001-of-00002.safetensors", True),
        ("model.safetensors.index.json", True),
        ("spiece.model", True),
        ("pytorch_model.bin", False),
        ("pytorch_model-00001-of-00002.bin", False),
        ("flax_model.msgpack", False),
        ("onnx/model.safetensors", False),
        ("modeling_t5.py", False),
    ],
)
def test_what_is_downloaded(file, wanted):
  matches = any(fnmatch.fnmatch(file, pattern) for pattern in hub.PATTERNS)
  assert matches == wanted

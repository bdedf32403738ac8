"""Tests of file access: nothing outside is read, nothing half is written."""

import os
import re

import pytest

from spec_t5x.checkpoints import files


@pytest.fixture
def cache(tmp_path):
  """A hub cache with one model; yields (cache, snapshot of the model)."""
  model = tmp_path / "models--org--name"
  snapshot = model / "snapshots" / "abc"
  snapshot.mkdir(parents=True)
  for blob in (model / "blobs" / "1", tmp_path / "blobs" / "ff" / "2"):
    blob.parent.mkdir(parents=True)
    blob.write_text("weights")
  (tmp_path / "secret").write_text("secret")
  return tmp_path, snapshot


class TestContained:

  @pytest.mark.parametrize("name", ["config.json", "a/b", "absent/c"])
  def test_inside(self, tmp_path, name):
    assert files.contained(tmp_path, name) == tmp_path / name

  @pytest.mark.parametrize("name", ["../x", "a/../../x", "a/../x", "/etc/x"])
  def test_path_outside(self, tmp_path, name):
    message = f"`{re.escape(name)}` leads out of the checkpoint"
    with pytest.raises(ValueError, match=message):
      files.contained(tmp_path, name)

  def test_link_outside(self, tmp_path):
    (tmp_path / "secret").touch()
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to("../secret")
    with pytest.raises(ValueError, match="`link` leads out of the checkpoint"):
      files.contained(root, "link")

  def test_link_inside(self, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    assert files.contained(tmp_path, "link").exists()

  def test_directory_may_itself_be_a_link(self, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").touch()
    (tmp_path / "link").symlink_to("real")
    assert files.contained(tmp_path / "link", "file").exists()

  @pytest.mark.parametrize("target", ["../../blobs/1", "../../../blobs/ff/2"])
  def test_hub_blobs(self, cache, target):
    _, snapshot = cache
    (snapshot / "model.safetensors").symlink_to(target)
    assert files.contained(snapshot, "model.safetensors").exists()

  def test_hub_link_outside_the_model(self, cache):
    _, snapshot = cache
    (snapshot / "model.safetensors").symlink_to("../../../secret")
    with pytest.raises(ValueError, match="leads out of the checkpoint"):
      files.contained(snapshot, "model.safetensors")

  def test_hub_path_to_another_snapshot(self, cache):
    _, snapshot = cache
    with pytest.raises(ValueError, match="leads out of the checkpoint"):
      files.contained(snapshot, "../def/model.safetensors")

  def test_only_the_hub_layout_opens_the_parents(self, tmp_path):
    root = tmp_path / "models--org--name" / "copies" / "abc"
    root.mkdir(parents=True)
    (root / "link").symlink_to("../../blobs")
    with pytest.raises(ValueError, match="leads out of the checkpoint"):
      files.contained(root, "link")


def test_check_links_finds_nested_links(tmp_path):
  root = tmp_path / "root"
  (root / "a" / "b").mkdir(parents=True)
  (root / "a" / "inner").symlink_to("b")
  files.check_links(root)
  (root / "a" / "b" / "outer").symlink_to(tmp_path)
  with pytest.raises(ValueError, match="`a/b/outer` leads out"):
    files.check_links(root)


class TestCheckpointDirectory:

  def test_absent(self, tmp_path):
    with pytest.raises(FileNotFoundError, match="no checkpoint directory"):
      files.checkpoint_directory(tmp_path / "absent")

  def test_file(self, tmp_path):
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(ValueError, match="must be a directory. Got the file"):
      files.checkpoint_directory(path)


class TestAtomicDirectory:

  def test_appears_when_whole(self, tmp_path):
    final = tmp_path / "parent" / "final"
    with files.atomic_directory(final) as temporary:
      (temporary / "file").write_text("content")
      assert not final.exists()
    assert (final / "file").read_text() == "content"
    assert os.listdir(final.parent) == ["final"]

  def test_failure_leaves_nothing(self, tmp_path):
    def interrupted():
      with files.atomic_directory(tmp_path / "final") as temporary:
        (temporary / "file").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
      interrupted()
    assert not os.listdir(tmp_path)

  def test_empty_directory_is_filled(self, tmp_path):
    with files.atomic_directory(tmp_path) as temporary:
      (temporary / "file").touch()
    assert os.listdir(tmp_path) == ["file"]

  def test_never_overwrites(self, tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file"):
      with pytest.raises(ValueError, match="new or empty directory. Got"):
        with files.atomic_directory(path):
          pytest.fail("The block must not run.")

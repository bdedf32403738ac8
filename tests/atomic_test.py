import os

import pytest

from spec_t5x import atomic


def test_write_replaces_at_once(tmp_path):
  path = tmp_path / "out.jsonl"
  path.write_text("old")

  def chunks():
    yield b"new "
    assert path.read_text() == "old"
    yield b"content"

  atomic.write(path, chunks())
  assert path.read_text() == "new content"
  assert os.listdir(tmp_path) == ["out.jsonl"]


def test_a_failure_leaves_the_old_content(tmp_path):
  path = tmp_path / "out.txt"
  atomic.write_text(path, "\u00e4lt")

  def chunks():
    yield b"new"
    raise RuntimeError

  with pytest.raises(RuntimeError):
    atomic.write(path, chunks())
  assert path.read_text("utf-8") == "\u00e4lt"

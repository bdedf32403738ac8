"""Tests of a decode job's files: no line lost, repeated or half read."""

import json
import os

import pytest

from spec_t5x import decode_files

SETTINGS = {"gamma": 5, "lines": (1, 2)}


def write(path, content):
  path.write_bytes(content)
  return decode_files.read_inputs(path)


@pytest.fixture
def path(tmp_path):
  return tmp_path / "in.txt"


@pytest.mark.parametrize(
    ("content", "entries"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b"no end", ["no end"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"\n\nthree\n", ["", "", "three"]),
        (b"\xef\xbb\xbfmark\n", ["mark"]),
        # Only line feeds end a line, whatever else `splitlines` cuts at.
        ("a\u2028b\x0cc\n".encode(), ["a\u2028b\x0cc"]),
        (b'{"text": 1}\n[1]\n7\n', ['{"text": 1}', "[1]", "7"]),
        (b'{"tokens": [5, 1]}\n{"tokens": []}', [[5, 1], []]),
    ],
)
def test_inputs(path, content, entries):
  inputs = write(path, content)
  assert inputs.entries == entries
  assert inputs.are_texts == isinstance(entries[0], str)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "at least one line"),
        (b"fine\nbad \xff\n", r"in.txt, line 2: .*utf-8"),
        (b'{"tokens": [1]}\ntext\n', r"in.txt, line 2: must be .*'text'"),
        (b'{"tokens": [1]}\n{"tokens": [1.5]}', "line 2: must be .* integers"),
        (b'{"tokens": [1]}\n\n{"tokens": [1]}', "line 2: must be"),
        (b'{"tokens": [true]}', "line 1: must be"),
        (b'{"tokens": "1 2"}', "line 1: must be"),
    ],
)
def test_malformed_inputs(path, content, message):
  with pytest.raises(ValueError, match=message):
    write(path, content)


def test_missing_inputs(path):
  with pytest.raises(FileNotFoundError, match=r"in\.txt"):
    decode_files.read_inputs(path)


def test_texts_need_a_vocabulary(path):
  texts = write(path, b"text\n")
  decode_files.check_inputs(texts, num_ids=8, has_vocabulary=True)
  with pytest.raises(ValueError, match=r"line 1: must be .* no vocabulary"):
    decode_files.check_inputs(texts, num_ids=8, has_vocabulary=False)


@pytest.mark.parametrize("bad", [0, 8, -1])
def test_ids_out_of_range(path, bad):
  content = b'{"tokens": [7, 1]}\n{"tokens": [7, %d, 1]}\n' % bad
  with pytest.raises(ValueError, match=rf"line 2: .*\[1, 8\).* Got {bad}\."):
    decode_files.check_inputs(write(path, content), 8, False)


@pytest.fixture
def partial_path(tmp_path):
  return tmp_path / "out.jsonl.partial"


def finished(path, settings=SETTINGS):
  """Batches in a partial file."""
  file = decode_files.PartialFile(path, settings)
  file.close()
  return file.batches


def test_partial_file_keeps_batches(partial_path):
  file = decode_files.PartialFile(partial_path, SETTINGS)
  assert file.batches == []
  for batch in range(3):
    file.append({"batch": batch, "text": "ä"})
  file.close()
  assert finished(partial_path) == [
      {"batch": batch, "text": "ä"} for batch in range(3)
  ]
  decode_files.PartialFile(partial_path, SETTINGS).remove()
  assert not partial_path.exists()


def test_torn_line_is_dropped(partial_path, monkeypatch):
  monkeypatch.setattr(os, "fsync", lambda file: None)
  file = decode_files.PartialFile(partial_path, SETTINGS)
  file.append({"batch": 0})
  file.append({"batch": 1, "text": "äöü"})
  file.close()
  content = partial_path.read_bytes()
  first_line = content.index(b"\n") + 1
  for length in range(len(content)):
    partial_path.write_bytes(content[:length])
    batches = finished(partial_path)
    whole_lines = content[:length].count(b"\n")
    assert len(batches) == max(0, whole_lines - 1)
    # What is left is whole lines, the first one written again if need be.
    assert (
        partial_path.read_bytes()
        == content[: max(first_line, content.rfind(b"\n", 0, length) + 1)]
    )


@pytest.mark.parametrize("tail", [b"\0\0\0\n", b"{}}\n", b'{"a": "\xff"}\n'])
def test_damaged_line(partial_path, tail):
  finished(partial_path)
  with open(partial_path, "ab") as file:
    file.write(tail)
  assert finished(partial_path) == []
  with open(partial_path, "ab") as file:
    file.write(tail + b"{}\n")
  with pytest.raises(ValueError, match=r"partial, line 2, is damaged"):
    finished(partial_path)


def test_other_settings_are_refused(partial_path):
  file = decode_files.PartialFile(partial_path, SETTINGS)
  file.append({"batch": 0})
  file.close()
  content = partial_path.read_bytes()
  other = {"gamma": 3, "lines": [1, 2], "seed": 0}
  message = (
      r"partial is of another run: `gamma` was 5 and is 3, `seed` was None and"
      r" is 0\. Delete the file"
  )
  with pytest.raises(ValueError, match=message):
    finished(partial_path, other)
  assert partial_path.read_bytes() == content


def test_other_settings_before_any_batch(partial_path):
  finished(partial_path)
  assert finished(partial_path, {"gamma": 3}) == []
  assert json.loads(partial_path.read_bytes()) == {"gamma": 3}


def test_file_in_use(partial_path):
  file = decode_files.PartialFile(partial_path, SETTINGS)
  with pytest.raises(ValueError, match=r"partial is in use by another run\."):
    decode_files.PartialFile(partial_path, SETTINGS)
  file.close()
  assert finished(partial_path) == []

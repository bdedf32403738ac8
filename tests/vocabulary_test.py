"""Tests of the vocabulary: T5's ids, and no text lost on the way."""

import re
import unicodedata

import numpy as np
import pytest
import sentencepiece

from spec_t5x import corpora, vocabulary

UNK_ID = 2


@pytest.fixture(scope="module")
def shipped():
  return vocabulary.Vocabulary()


def test_shipped_vocabulary_has_t5_ids(shipped):
  assert (shipped.size, shipped.pad_id, shipped.eos_id) == (8000, 0, 1)


@pytest.mark.parametrize("task", corpora.PREFIXES)
def test_decoding_gives_the_encoded_text_back(shipped, task):
  # SentencePiece unifies compatible characters (NFKC) and runs of spaces;
  # texts without such must come back to the letter.
  texts = [
      text
      for pair in corpora.load_pairs(task, "validation")
      for text in (pair.source, pair.target)
  ]
  plain = [
      text
      for text in texts
      if unicodedata.is_normalized("NFKC", text)
      and text == " ".join(text.split())
  ]
  assert len(plain) > 0.9 * len(texts)
  for text in plain:
    assert shipped.decode(shipped.encode(text)) == text


@pytest.mark.parametrize(
    "text",
    ["Größenänderung über „Öffnen“", "naïve 漢字 и кириллица", "😀 {a|b}~"],
)
def test_rare_characters_are_spelt_in_bytes(shipped, text):
  ids = shipped.encode(text)
  assert UNK_ID not in ids
  assert shipped.decode(ids) == text


def test_encode_adds_no_end_of_text(shipped):
  ids = shipped.encode("Click Save.")
  assert ids
  assert not {shipped.pad_id, shipped.eos_id} & set(ids)
  assert shipped.encode("") == []


def test_decode_stops_at_the_first_end_of_text(shipped):
  ids = shipped.encode("Click Save.")
  more = [*ids, shipped.eos_id, *shipped.encode("More"), shipped.eos_id]
  assert shipped.decode(more) == "Click Save."
  assert shipped.decode([shipped.eos_id]) == ""
  assert shipped.decode([]) == ""


def test_decode_skips_padding_and_padded_ids(shipped):
  ids = shipped.encode("Click Save.")
  row = np.array([0, *ids[:2], 0, 8000, 8063, *ids[2:], 1, 0, 0], np.int32)
  assert shipped.decode(row) == "Click Save."


def test_decode_refuses_negative_ids(shipped):
  with pytest.raises(ValueError, match="`ids` must not be negative. Got -1"):
    shipped.decode([5, -1])


def test_missing_file_is_named(tmp_path):
  path = tmp_path / "spiece.model"
  message = re.escape(f"Got {str(path)!r}, where there is no file.")
  with pytest.raises(FileNotFoundError, match=message):
    vocabulary.Vocabulary(path)


def test_file_that_is_no_model_is_refused(tmp_path):
  path = tmp_path / "spiece.model"
  path.write_text("not a model")
  with pytest.raises(ValueError, match="`path` must be a SentencePiece model"):
    vocabulary.Vocabulary(path)


def test_model_without_padding_is_refused(tmp_path):
  path = tmp_path / "spiece.model"
  with path.open("wb") as model:
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b c", "b c d"]),
        model_writer=model,
        vocab_size=9,
        hard_vocab_limit=False,
    )
  with pytest.raises(ValueError, match="must define PAD and EOS. Got PAD -1"):
    vocabulary.Vocabulary(path)


def test_pieces_spell_a_text(shipped):
  text = "Open the  file, größer: 𝄞"
  spelt = "".join(map(shipped.piece, shipped.encode("Open the file.")))
  assert spelt == " Open the file."
  assert "<0x" in "".join(map(shipped.piece, shipped.encode(text)))


def test_pieces_without_text(shipped):
  assert shipped.piece(shipped.eos_id) == "</s>"
  assert shipped.piece(8050) == "<8050>"
  # A lone space must be seen.
  assert shipped.piece(shipped._pieces.piece_to_id("\u2581")) == "\u2581"
  with pytest.raises(ValueError, match="`token` must not be negative. Got -1"):
    shipped.piece(-1)

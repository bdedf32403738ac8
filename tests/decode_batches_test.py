"""Tests of a decode job's batches and records."""

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_decoder import CopyingDecoder, plain_statistics

from spec_t5x import decode_batches


def ids_of_lengths(lengths):
  """Inputs that differ from each other: each repeats its own number."""
  return [[number + 1] * length for number, length in enumerate(lengths)]


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=40),
    st.integers(1, 12),
)
def test_every_input_is_in_one_batch(lengths, batch_size):
  ids = ids_of_lengths(lengths)
  batches = decode_batches.make_batches(ids, batch_size)
  lines = [line for batch in batches for line in batch.lines]
  assert sorted(lines) == list(range(len(ids)))
  assert [batch.index for batch in batches] == list(range(len(batches)))
  for batch in batches:
    assert len(batch.example_ids) == len(batch.ids) <= batch_size
    for line, row in zip(batch.example_ids, batch.ids, strict=True):
      assert row[row != 0].tolist() == ids[line]


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=40),
    st.integers(1, 12),
)
def test_few_shapes_and_little_padding(lengths, batch_size):
  batches = decode_batches.make_batches(ids_of_lengths(lengths), batch_size)
  assert len(batches) <= -(-len(lengths) // batch_size)
  assert len({len(batch.ids) for batch in batches}) == 1
  repeated = sum(len(batch.ids) - len(batch.lines) for batch in batches)
  assert repeated < len(batches)
  ordered = [lengths[line] for batch in batches for line in batch.lines]
  assert ordered == sorted(lengths, reverse=True)


def test_widths():
  widths = [decode_batches.padded_width(length) for length in range(1025)]
  assert sorted(set(widths)) == [
      *(16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
  ]
  assert widths == sorted(widths)
  for length, width in enumerate(widths):
    assert 0 <= width - length <= max(16, length / 2)


def test_records():
  ids = ids_of_lengths([2, 1, 3])
  entries = ["a", "b", "c"]
  batches = decode_batches.make_batches(ids, 2)
  results = [
      decode_batches.decode_batch(CopyingDecoder(), batch, entries, False, True)
      for batch in batches
  ]
  assert [result.lines for result in results] == [[2, 0], [1]]
  assert results[0].records[1] == {
      "input": "a",
      "prediction": "1",
      # Emitted padding is kept, that of the buffer is not.
      "tokens": [1, 1, 0],
      "log_prob": 0.0,
      "accept_counts": [3],
      "iterations": 3,
      "emitted": 3,
  }
  assert results[0].records[0]["log_prob"] == 0.6666667
  # The repeated row is in no record and counts nowhere.
  assert len(results[1].records) == 1
  assert results[1].statistics == plain_statistics(2)


def test_records_without_vocabulary():
  [batch] = decode_batches.make_batches([[7]], 2)
  decoder = CopyingDecoder(vocabulary=None)
  result = decode_batches.decode_batch(decoder, batch, [[7]], False, True)
  assert result.records[0]["input"] == [7]
  assert "prediction" not in result.records[0]


def test_records_of_several_decodes():
  [batch] = decode_batches.make_batches([[7], [8, 8]], 2)
  result = decode_batches.decode_batch(
      CopyingDecoder(num_decodes=3), batch, ["a", "b"], False, True
  )
  assert result.lines == [1, 0]
  assert result.records[0] == {
      "input": "b",
      "prediction": ["8"] * 3,
      "tokens": [[8, 8, 0]] * 3,
      "log_prob": [0.3333333] * 3,
      "accept_counts": [[3]] * 3,
      "iterations": [3] * 3,
      "emitted": [3] * 3,
  }
  assert result.statistics.emitted == 3 * 3 + 3 * 2


def test_prompts_are_part_of_the_tokens():
  [batch] = decode_batches.make_batches([[7]], 2)
  result = decode_batches.decode_batch(
      CopyingDecoder(), batch, ["a"], True, True
  )
  assert result.records[0]["tokens"] == [7, 0, 0]


def test_result_survives_json():
  [batch] = decode_batches.make_batches([[7], [8, 8]], 2)
  result = decode_batches.decode_batch(
      CopyingDecoder(num_decodes=2), batch, ["a", "b"], False, True
  )
  fields = json.loads(json.dumps(dataclasses.asdict(result)))
  assert decode_batches.BatchResult.from_dict(fields) == result


def test_error_tells_how_lines_are_counted():
  def decoder(ids, example_ids):
    raise FloatingPointError(f"not finite for inputs {example_ids}")

  [batch] = decode_batches.make_batches([[7]], 2)
  with pytest.raises(FloatingPointError, match=r"inputs \[0\]") as error:
    decode_batches.decode_batch(decoder, batch, ["a"], False, True)
  assert error.value.__notes__ == [
      "Inputs are counted from 0: input 0 is line 1."
  ]

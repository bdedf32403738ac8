"""Tests of grouping, sorting and spelling what the loop returned."""

import numpy as np
import pytest

from spec_t5x.decode_result import make_result
from spec_t5x.decoding_types import Counts, Decoded
from spec_t5x.vocabulary import Vocabulary

GAMMA = 2


def make_decoded(token_log_probs, finite=None):
  """Row n holds token 10 + n, and emitted n + 1 of them."""
  rows = len(token_log_probs)
  number = np.arange(rows)
  return Decoded(
      tokens=np.repeat(10 + number[:, None], 2, axis=1),
      token_log_probs=np.array(token_log_probs),
      finite=np.ones(rows, bool) if finite is None else np.array(finite),
      counts=Counts(
          accept_counts=np.tile(number[:, None], (1, GAMMA + 1)),
          tested=np.tile(number[:, None], (1, GAMMA)),
          accepted=np.zeros((rows, GAMMA), int),
          overlap=np.zeros((rows, GAMMA)),
          iterations=number + 1,
          emitted=number + 1,
      ),
  )


def test_one_decode_of_each_input_has_no_axis_of_decodes():
  result = make_result(
      make_decoded([[-3.0, -1.0], [-1.0, -1.0]]), 1, None, None
  )
  assert result.tokens.tolist() == [[10, 10], [11, 11]]
  assert result.log_probs.tolist() == [-4.0, -2.0]
  assert result.texts is None
  assert [row.emitted for row in result.per_decode] == [1, 2]
  assert result.statistics.emitted == 3


def test_decodes_of_an_input_are_sorted_and_take_their_statistics_along():
  decoded = make_decoded(
      [[-1.0, 0.0], [-9.0, 0.0], [-2.0, 0.0], [-3.0, -3.0], [0.0, 0.0], [0, -7]]
  )
  result = make_result(decoded, 3, None, Vocabulary())
  assert result.tokens[..., 0].tolist() == [[11, 12, 10], [15, 13, 14]]
  assert result.log_probs.tolist() == [[-9.0, -2.0, -1.0], [-7.0, -6.0, 0.0]]
  assert result.token_log_probs.sum(-1).tolist() == result.log_probs.tolist()
  assert [row.emitted for row in result.per_decode] == [2, 3, 1, 6, 4, 5]
  assert [len(texts) for texts in result.texts] == [3, 3]
  assert result.texts[0][2] == Vocabulary().decode([10, 10])


def test_decodes_of_one_score_keep_their_order():
  result = make_result(make_decoded([[-1.0, 0.0]] * 4), 2, None, None)
  assert result.tokens[..., 0].tolist() == [[10, 11], [12, 13]]


@pytest.mark.parametrize(
    ("example_ids", "named"), [(None, "1"), ([40, 41], "41")]
)
def test_inputs_without_a_law_are_named(example_ids, named):
  decoded = make_decoded([[0.0, 0.0]] * 4, [True, True, True, False])
  with pytest.raises(FloatingPointError, match=rf"for inputs \[{named}\]\.$"):
    make_result(decoded, 2, example_ids, None)

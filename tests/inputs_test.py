"""Tests of checks of the decoder's arguments, and of rows' keys."""

import jax
import numpy as np
import pytest

from spec_t5x import inputs

GOOD = {
    "gamma": 5,
    "lenience": 1.0,
    "block_verification": False,
    "num_decodes": 1,
    "max_decode_steps": 64,
}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"gamma": 0},
        {"gamma": np.int64(3)},
        {"lenience": 0.1},
        {"block_verification": True},
    ],
)
def test_good_settings_pass(changes):
  inputs.check_settings(**GOOD | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gamma": -1}, "`gamma` must be an integer, at least 0. Got -1."),
        ({"gamma": 2.0}, "`gamma` must be an integer, at least 0. Got 2.0."),
        ({"gamma": True}, "`gamma` must be an integer, at least 0. Got True."),
        ({"num_decodes": 0}, "`num_decodes` must be an integer, at least 1."),
        ({"max_decode_steps": 0}, "`max_decode_steps` must be an integer"),
        ({"lenience": 0.0}, "`lenience` must be"),
        (
            {"lenience": 0.5, "block_verification": True},
            "`lenience` must be 1 if `block_verification` is on",
        ),
    ],
)
def test_bad_settings_are_named(changes, message):
  with pytest.raises(ValueError, match=message):
    inputs.check_settings(**GOOD | changes)


def test_token_rows_become_a_rectangle():
  array = inputs.token_array("texts", [[3, 1], np.array([4]), []], 8)
  assert array.tolist() == [[3, 1], [4, 0], [0, 0]]
  assert array.dtype == np.int32


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1], [2.5]], r"`texts\[1\]` must be a sequence of integers"),
        ([[[1]]], r"`texts\[0\]` must be .* Got int64 with shape \(1, 1\)"),
        ([[8]], r"`texts\[0\]` must hold ids in \[0, 8\). Got 8 to 8."),
        ([[3], [-1, 2]], r"`texts\[1\]` must hold ids .* Got -1 to 2."),
    ],
)
def test_bad_tokens_are_named(rows, message):
  with pytest.raises(ValueError, match=message):
    inputs.token_array("texts", rows, 8)


@pytest.mark.parametrize(
    ("length", "padded"), [(0, 16), (1, 16), (16, 16), (17, 32)]
)
def test_lengths_are_padded_to_few(length, padded):
  assert inputs.padded_length(length) == padded
  ids = np.ones((2, length), np.int32)
  assert inputs.pad_to(ids).shape == (2, padded)
  assert inputs.pad_to(ids).sum() == 2 * length


def test_a_key_depends_on_seed_example_and_decode_alone():
  data = lambda *args: jax.random.key_data(inputs.row_keys(*args)).tolist()
  together = data(0, [7, 9], 3)
  assert len({tuple(key) for key in together}) == 6
  # Not on the rows beside it, nor on how many decodes there are.
  assert data(0, [9], 3) == together[3:]
  assert data(0, [7], 1) == together[:1]
  assert not set(map(tuple, data(1, [7, 9], 3))) & set(map(tuple, together))


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([0], "must have one entry per input, 2. Got 1."),
        ([0, -1], r"must be in \[0, 2\*\*32\). Got -1 to 0."),
        ([0, 2**32], r"must be in \[0, 2\*\*32\)."),
    ],
)
def test_bad_example_ids_are_named(ids, message):
  with pytest.raises(ValueError, match=message):
    inputs.check_example_ids(ids, 2)


@pytest.mark.parametrize("size", [8000, 8064, 8128])
def test_vocabularies_may_differ_by_padding(size):
  inputs.check_vocab_size("draft", size, 8064 if size > 8000 else 8100)


@pytest.mark.parametrize("size", [100, 7935, 8193])
def test_other_vocabularies_are_named(size):
  with pytest.raises(ValueError, match=rf"`draft` must have .* Got {size}\."):
    inputs.check_vocab_size("draft", size, 8064)

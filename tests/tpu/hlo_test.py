"""Tests of reading compiled programs, on texts in their form."""

import pathlib

import pytest

from spec_t5x.tpu import hlo

# A loop of unknown length around one of four passes, both with collectives;
# copies in the loop, outside it and inside a fusion.
PROGRAM = (pathlib.Path(__file__).parent / "loop.hlo").read_text("utf-8")


@pytest.fixture(name="program")
def _program():
  return hlo.Program(PROGRAM)


def test_collectives_of_inner_loops_count_as_often_as_they_run(program):
  tally = program.per_iteration()
  # The asynchronous one and four of the inner loop; the fused one.
  assert tally.collectives == {"all-reduce": 5, "all-gather": 1}
  assert tally.collective_bytes == 5 * 8 * 4 + 16 * 8 * 2


def test_relayouts_stand_by_themselves(program):
  """A copy in a fusion costs nothing of its own, one between memories too."""
  tally = program.per_iteration()
  assert (tally.relayouts, tally.relayout_bytes) == (1, 512 * 384 * 2)


def test_outside_is_without_the_loop(program):
  tally = program.outside()
  assert (tally.relayouts, tally.relayout_bytes) == (1, 8 * 8 * 2)
  assert tally.collectives == {}


def test_trip_count_is_that_of_a_scan(program):
  [inner] = program._loops("outer_body")
  assert program.trip_count(inner) == 4


def test_a_loop_of_unknown_length_inside_is_an_error(program):
  with pytest.raises(ValueError, match="while.2 must count to a constant"):
    program.trip_count(program.decoding_loop())


def test_arrays_are_padded_to_tiles(program):
  carried = list(hlo.sizes(program.decoding_loop().shape))
  assert [size for size, _ in carried] == [4, 32, 3 * 64 * 135 * 2]
  # 8 to 128 elements; 135 to 256; 64 is a multiple of 8.
  assert [padded for _, padded in carried][1:] == [512, 3 * 64 * 256 * 2]


def test_the_order_of_axes_tells_which_is_padded():
  [(size, padded)] = hlo.sizes("bf16[6,64,135]{1,0,2:T(8,128)(2,1)}")
  assert (size, padded) == (6 * 64 * 135 * 2, 8 * 128 * 135 * 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("HloModule empty\n", "must hold an ENTRY computation. Got none."),
        (PROGRAM.replace("while(%copy.7)", "call(%copy.7)"), "It runs 0."),
    ],
)
def test_other_programs_are_errors(text, message):
  with pytest.raises(ValueError, match=message):
    hlo.Program(text).decoding_loop()

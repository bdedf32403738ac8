"""Texts of an experiment: what is encoded, cut, left out, and read back."""

import dataclasses

import numpy as np
import pytest
import toy_decoder

from spec_t5x import benchmarks
from spec_t5x.corpora import Pair
from spec_t5x.experiments import texts
from spec_t5x.experiments.sweep import SweepRun
from spec_t5x.experiments.sweep_settings import Sweep
from spec_t5x.experiments.texts import Texts
from spec_t5x.model import Model
from spec_t5x.vocabulary import Vocabulary

VOCABULARY = Vocabulary()
SEQ2SEQ = Model("toy", toy_decoder.CONFIG, {}, VOCABULARY)
DECODER_ONLY = Model("toy", toy_decoder.DECODER_ONLY, {}, VOCABULARY)
SOURCES = (
    "Open the file and save it under another name.",
    "Click OK.",
    "The dialog shows all open files in a list.",
    "Select a page style, and then click the button to apply it to the text.",
)


def make(target, prompt_tokens=None, **changes):
  pairs = [Pair(text, text.upper(), str(i)) for i, text in enumerate(SOURCES)]
  benchmark = benchmarks.Benchmark(pairs, **changes)
  return Texts(benchmark, target, prompt_tokens)


def test_inputs_of_an_encoder_end_in_eos():
  made = make(SEQ2SEQ)
  assert made.ids == [[*VOCABULARY.encode(text), 1] for text in SOURCES]
  assert made.numbers == [0, 1, 2, 3]
  assert [made.prompt_length(i) for i in made.numbers] == [0] * 4
  assert made.source(1) == SOURCES[1]


def test_prompts_are_the_first_tokens_of_longer_texts():
  made = make(DECODER_ONLY, 6)
  lengths = [len(VOCABULARY.encode(text)) for text in SOURCES]
  assert made.numbers == [i for i, n in enumerate(lengths) if n > 6]
  assert 0 < len(made.numbers) < 4
  for number in made.numbers:
    ids = VOCABULARY.encode(SOURCES[number])
    assert made.ids[number] == ids[:6]
    assert made.prompt_length(number) == 6
    assert SOURCES[number].startswith(made.source(number))
  assert list(made.batches(2)) == [made.numbers[:2], made.numbers[2:]]


def test_whole_texts_are_prompts_without_eos():
  made = make(DECODER_ONLY)
  assert made.ids == [VOCABULARY.encode(text) for text in SOURCES]


def test_inputs_are_padded_to_few_widths():
  array = make(SEQ2SEQ).inputs([1, 3])
  assert array.shape[1] % 16 == 0
  for row, number in zip(array, (1, 3), strict=True):
    ids = [*VOCABULARY.encode(SOURCES[number]), 1]
    assert row.tolist() == ids + [0] * (len(row) - len(ids))


def test_texts_of_the_commonest_width_are_timed():
  made = make(SEQ2SEQ)
  widths = [made.inputs([i]).shape[1] for i in range(4)]
  assert sorted(widths) == [16, 16, 16, 32]
  assert made.commonest(3) == [0, 1, 2]
  assert made.commonest(1) == [0]
  # There are no more of one width.
  assert made.commonest(4) == made.commonest(9) == [0, 1, 2, 3]


def test_a_row_has_what_was_written_behind_the_prompt():
  made = make(DECODER_ONLY, 6)
  whole = VOCABULARY.encode(SOURCES[0])
  tokens = np.array([*whole, 1, 0, 0])
  row = made.row(0, tokens, len(whole) + 1 - 6)
  assert row["tokens"] == [*whole[6:], 1]
  assert made.source(0) + row["prediction"] == SOURCES[0]
  assert row["prediction"].startswith(" ")
  assert (row["example"], row["reference"]) == (0, SOURCES[0].upper())


def test_texts_without_a_prompt_are_read_whole():
  ids = VOCABULARY.encode(SOURCES[2])
  assert texts.read(VOCABULARY, [], [*ids, 1, 5]) == SOURCES[2]


@pytest.mark.parametrize(
    ("target", "prompt_tokens", "message"),
    [
        (SEQ2SEQ, 6, "`prompt_tokens` must be None for an encoder-decoder"),
        (DECODER_ONLY, 99, "`prompt_tokens` must be fewer than those of some"),
        (
            dataclasses.replace(SEQ2SEQ, vocabulary=None),
            None,
            "`target` must have a vocabulary. 'toy' has none.",
        ),
    ],
)
def test_bad_targets_are_named(target, prompt_tokens, message):
  with pytest.raises(ValueError, match=message):
    make(target, prompt_tokens)


def test_code_needs_line_breaks():
  with pytest.raises(ValueError, match="must keep line breaks and indents"):
    make(DECODER_ONLY, is_code=True)


def test_sweeps_of_programs_need_permission(tmp_path):
  sweep = Sweep("toy", "humaneval", "target", {"small": "draft"})
  with pytest.raises(ValueError, match="`run_programs` must be True"):
    SweepRun(sweep, tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prompt_tokens": 0}, "`prompt_tokens` must be at least 1, or None"),
        ({"top_p": 1.5}, r"`top_p` must be in \[0, 1\]"),
    ],
)
def test_bad_settings_are_named(changes, message):
  with pytest.raises(ValueError, match=message):
    Sweep("toy", "english", "target", {"small": "draft"}, **changes)

"""Tests of traces: they show the very decode, and every drafted token."""

import io

import numpy as np
import pytest
import toy_decoder
from rich.console import Console

import spec_t5x
from spec_t5x import trace, vocabulary
from spec_t5x.trace import Segment

TEXT = "Open the file."
GAMMA, STEPS = 3, 12

# Two iterations of gamma 4: two tokens stand, then all four.
ITERATIONS = [
    [
        Segment("accepted", (10, 11)),
        Segment("rejected", (12,)),
        Segment("target", (13,)),
        Segment("untested", (14,)),
    ],
    [Segment("accepted", (15, 16, 17, 18)), Segment("target", (1,))],
]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
  """A target and a draft that is right now and then."""
  root = tmp_path_factory.mktemp("models")
  return [
      spec_t5x.load(toy_decoder.save_model(root / "target")),
      spec_t5x.load(toy_decoder.save_model(root / "draft", noise=0.1)),
  ]


def traced(kinds, iterations):
  """Tokens of all segments of some kinds, in order."""
  return [
      token
      for segments in iterations
      for segment in segments
      if segment.kind in kinds
      for token in segment.tokens
  ]


def test_trace_is_the_decode(models):
  decoder = spec_t5x.Decoder(
      *models, gamma=GAMMA, temperature=1.0, max_decode_steps=STEPS, seed=1
  )
  result = decoder([TEXT], example_ids=[7])
  counts = result.statistics
  iterations = trace.trace(decoder, TEXT, 7)
  emitted = result.tokens[0, : counts.emitted].tolist()
  assert traced(("accepted", "target"), iterations) == emitted
  assert len(iterations) == counts.iterations
  assert len(traced(("accepted",), iterations)) == counts.accepted
  rejected = len(traced(("rejected",), iterations))
  assert rejected == counts.tested - counts.accepted
  # Both must occur, or else this shows little.
  assert rejected
  assert counts.accepted
  for segments in iterations[:-1]:
    sizes = {kind: len(tokens) for kind, tokens in segments}
    drafted = sizes.get("accepted", 0) + sizes.get("rejected", 0)
    assert drafted + sizes.get("untested", 0) == GAMMA
    assert sizes["target"] == 1
    assert sizes.get("rejected", 0) == (sizes.get("accepted", 0) < GAMMA)
  # Behind the end of a text nothing was drafted in earnest.
  assert not traced(("untested",), iterations[-1:])
  other = trace.trace(decoder, TEXT, 8)
  assert traced(("accepted", "target"), other) != emitted


def test_plain_trace_is_the_targets(models):
  decoder = spec_t5x.Decoder(models[0], temperature=1.0, max_decode_steps=STEPS)
  iterations = trace.trace(decoder, TEXT)
  assert [[kind for kind, _ in segments] for segments in iterations] == [
      ["target"]
  ] * len(iterations)


def shown(vocabulary_or_none, **settings):
  """What a terminal gets."""
  file = io.StringIO()
  console = Console(file=file, width=80, **settings)
  console.print(trace.render(ITERATIONS, vocabulary_or_none, "[title]"))
  return file.getvalue()


def test_rendering_of_ids():
  assert [line.split() for line in shown(None).splitlines()] == [
      ["[title]"],
      ["iteration", "accepted", "text", "untested"],
      ["1", "2", "10", "11", "12", "13", "14"],
      ["2", "4", "15", "16", "17", "18", "1"],
      ["10", "11", "13", "15", "16", "17", "18", "1"],
      "6 accepted, 1 rejected, 2 target, 1 untested,"
      " 8 tokens in 2 iterations".split(),
  ]


def test_colours():
  # Escape codes: 32 green, 31 red, 94 bright blue, 2 dim.
  text = shown(None, force_terminal=True, color_system="standard")
  assert "\x1b[32m 10 11\x1b[0m\x1b[9;31m 12\x1b[0m\x1b[94m 13\x1b[0m" in text
  assert "\x1b[2m 14" in text


def test_rendering_of_pieces():
  pieces = vocabulary.Vocabulary()
  text = shown(pieces)
  assert "</s>" in text
  whole = "".join(
      pieces.piece(token)
      for token in traced(("accepted", "target"), ITERATIONS)
  )
  assert whole in text


def test_pieces_noted_down_spell_as_the_vocabulary_does():
  pieces = vocabulary.Vocabulary()
  noted = trace.spelt(ITERATIONS[0][0], pieces)
  assert noted["kind"] == "accepted"
  assert noted["tokens"] == (10, 11)
  assert noted["pieces"] == [pieces.piece(10), pieces.piece(11)]


@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_export(tmp_path, suffix):
  path = tmp_path / f"trace.{suffix}"
  trace.export([trace.render(ITERATIONS, None, "a title")], path)
  content = path.read_text("utf-8")
  assert content.lstrip().startswith(
      {"svg": "<svg", "html": "<!DOCTYPE"}[suffix]
  )
  assert "line-through" in content
  # It is looked at without a network.
  assert "url(http" not in content
  for part in ("title", "iteration", "12"):
    assert part in content


def test_export_to_another_format(tmp_path):
  with pytest.raises(
      ValueError, match=r"must end in \.svg or \.html\. Got .*png"
  ):
    trace.export([], tmp_path / "trace.png")


def test_infinite_logits(models):
  target, _ = models
  params = {**target.params}
  params["token_embedder"] = {
      "embedding": np.full_like(
          target.params["token_embedder"]["embedding"], np.inf
      )
  }
  broken = spec_t5x.Model("broken", target.config, params, target.vocabulary)
  decoder = spec_t5x.Decoder(broken, temperature=1.0, max_decode_steps=STEPS)
  with pytest.raises(FloatingPointError, match="not finite"):
    trace.trace(decoder, TEXT)

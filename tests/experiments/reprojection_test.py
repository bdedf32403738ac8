"""Re-projecting changes what a step costs, and nothing that it returns."""

import functools
import types

import numpy as np
import pytest
import toy_models

from spec_t5x import network
from spec_t5x.decoder import Decoder
from spec_t5x.drafts import NgramTable
from spec_t5x.experiments import reprojection, timing
from spec_t5x.experiments.reprojection import ReprojectingScorer
from spec_t5x.experiments.reprojection_run import Reprojection
from spec_t5x.model import Model
from spec_t5x.types import Scorer

INPUTS = np.array([[5, 6, 7, 1], [9, 1, 0, 0]])
STEPS = 6

pytestmark = pytest.mark.usefixtures("quick_compilation")


@functools.cache
def model(noise=0.0):
  config, params = toy_models.tiny_t5(
      0, num_encoder_layers=1, num_decoder_layers=1
  )
  return Model("tiny", config, toy_models.noisy(params, 0, noise))


@functools.cache
def decoder(draft=None):
  draft = draft or model(0.3)
  return Decoder(
      model(), draft, gamma=2, temperature=1.0, max_decode_steps=STEPS
  )


@pytest.mark.parametrize("projection", ["as_written", "every_step"])
def test_tokens_are_the_same(projection):
  """Drawn, so that other laws would lead to other tokens."""
  changed = reprojection.with_projection(decoder(), projection)
  decoded = [
      timing.timed_decode(each, each.prepare(INPUTS)).decoded
      for each in (decoder(), changed)
  ]
  np.testing.assert_array_equal(decoded[0].tokens, decoded[1].tokens)
  np.testing.assert_allclose(
      decoded[0].token_log_probs, decoded[1].token_log_probs, atol=1e-5
  )
  for scorer in (changed.models.target, changed.models.draft.scorer):
    assert isinstance(scorer, ReprojectingScorer)
    assert isinstance(scorer, Scorer)
    assert scorer.vocab_size == 16
  # The decoder that was given is as it was.
  assert isinstance(decoder().models.target, network.T5Scorer)


def test_projecting_once_is_what_the_decoder_does():
  changed = reprojection.with_projection(decoder(), "once")
  assert changed.models == decoder().models


def test_tables_have_nothing_to_project():
  texts = np.random.default_rng(0).integers(2, 16, (9, 30))
  table = NgramTable.build(texts, 2, 16)
  given = Decoder(model(), table, gamma=2, max_decode_steps=STEPS)
  changed = reprojection.with_projection(given, "every_step")
  assert changed.models.draft == given.models.draft


def test_unknown_projections_and_models_without_encoder_are_refused():
  with pytest.raises(ValueError, match=r"must be one of .* Got 'sometimes'"):
    reprojection.with_projection(decoder(), "sometimes")
  config = types.SimpleNamespace(decoder_only=True)
  models = types.SimpleNamespace(
      target=types.SimpleNamespace(config=config), draft=None
  )
  with pytest.raises(ValueError, match="must have a target with an encoder"):
    reprojection.with_projection(
        types.SimpleNamespace(models=models), "every_step"
    )


PROGRAM = """\
HloModule m

%inner (x: f32[2]) -> f32[2] {
  ROOT %a = f32[2] dot(%x, %x)
}

%body (s: f32[2]) -> f32[2] {
  %b = f32[2] fusion(%s), kind=kLoop, calls=%inner
  %c = f32[2] convolution(%b, %s)
  ROOT %d = f32[2] call(%c), to_apply=%inner
}

%cond (s: f32[2]) -> pred[] {
  ROOT %e = pred[] constant(true)
}

%before (x: f32[2]) -> f32[2] {
  ROOT %f = f32[2] dot(%x, %x)
}

ENTRY %main (x: f32[2]) -> f32[2] {
  %g = f32[2] call(%x), to_apply=%before
  ROOT %h = f32[2] while(%g), condition=%cond, body=%body
}
"""


def test_products_before_the_loop_do_not_count():
  assert reprojection.matmuls_in_loops(PROGRAM) == 2
  assert reprojection.matmuls_in_loops(PROGRAM.replace(" while(", " x(")) == 0


def test_only_pinned_projections_stay_in_a_compiled_loop():
  """A layer has two projections; the compiler moves them if it may."""
  counted = {}
  for projection in reprojection.PROJECTIONS:
    plain = reprojection.with_projection(
        Decoder(model(), max_decode_steps=STEPS), projection
    )
    request = plain.prepare(INPUTS[:1])
    program = timing.lower_decode(plain, request).compile().as_text()
    counted[projection] = reprojection.matmuls_in_loops(program)
  assert counted["once"] > 5
  assert counted["every_step"] == counted["once"] + 2
  assert counted["as_written"] in (counted["once"], counted["every_step"])


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("input_lengths", (), "`input_lengths` must not be empty"),
        ("input_lengths", (64, 20), r"multiples of 16.* Got \(64, 20\)"),
        ("gamma", 0, "`gamma` must be at least 1. Got 0"),
    ],
)
def test_bad_settings_are_named(field, value, message):
  with pytest.raises(ValueError, match=message):
    Reprojection("n", "r", "ende", "t", "d", **{field: value})

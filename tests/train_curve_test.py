"""Tests of the curve: its figures, and what a kill leaves of it."""

import json
import math

import jax.numpy as jnp
import pytest

from spec_t5x.train_curve import Curve


def add(curve, nats, count):
  curve.add(jnp.float32(nats), jnp.int32(count))


def steps_of(path):
  return [json.loads(row)["step"] for row in path.read_text().splitlines()]


def test_row_pools_tokens(tmp_path):
  curve = Curve(tmp_path / "log.jsonl", 0)
  add(curve, 3.0, 1)
  add(curve, 5.0, 3)
  curve.flush()
  row = curve.write(2, 1.23456, {"bleu": 20.126})
  assert row["step"] == 2
  assert row["loss"] == 2.0
  assert row["held_out_loss"] == 1.2346
  assert row["bleu"] == 20.13
  assert json.loads((tmp_path / "log.jsonl").read_text()) == row
  add(curve, 4.0, 4)
  curve.flush()
  assert curve.write(3, 1.0, {})["loss"] == 1.0


def test_looks_at_the_step_before(tmp_path):
  curve = Curve(tmp_path / "log.jsonl", 0)
  add(curve, 3.0, 2)
  assert math.isnan(curve.last_loss)
  add(curve, 5.0, 2)
  assert curve.last_loss == 1.5
  curve.flush()
  assert curve.last_loss == 2.5


def test_names_the_step_that_is_not_finite(tmp_path):
  curve = Curve(tmp_path / "log.jsonl", 7)
  add(curve, 3.0, 2)
  add(curve, math.nan, 2)
  with pytest.raises(FloatingPointError, match="The loss of step 9 is nan."):
    curve.flush()


def test_continues_at_the_checkpoint(tmp_path):
  path = tmp_path / "log.jsonl"
  rows = [
      {"step": 10, "loss": 3.0, "seconds": 5.0},
      {"step": 20, "loss": 2.0, "seconds": 9.0},
  ]
  path.write_text("".join(json.dumps(row) + "\n" for row in rows))
  curve = Curve(path, 15)
  assert steps_of(path) == [10]
  add(curve, 1.0, 1)
  curve.flush()
  assert 5.0 <= curve.write(16, 1.0, {})["seconds"] < 8.0
  assert steps_of(path) == [10, 16]


def test_part_of_a_line_is_dropped(tmp_path):
  path = tmp_path / "log.jsonl"
  path.write_text('{"step": 1, "seconds": 1.0}\n{"step": 2, "sec')
  Curve(path, 5)
  assert steps_of(path) == [1]

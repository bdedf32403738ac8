"""Claims about speed: the words follow the numbers."""

import pytest
from toy_evidence import evidence, speed, walltime

from spec_t5x.report import claims_speed, paper_notes
from spec_t5x.report.findings import FAILS, HOLDS, OPEN, PARTLY


@pytest.mark.parametrize(
    ("speeds", "verdict"),
    [
        ([2.2, 2.5], HOLDS),
        ([2.2, 1.5], PARTLY),
        ([1.8, 1.5], FAILS),
        # Passes on both sides of 2 do not show it, nor that it is not so.
        ([2.05, 1.95], OPEN),
        ([2.05, 1.5], FAILS),
        ([2.05, 2.5], PARTLY),
    ],
)
def test_speed(speeds, verdict):
  judged = claims_speed.faster(
      walltime(*({"temperature": t} | speed(of) for t, of in enumerate(speeds)))
  )
  assert judged.verdict == verdict
  assert f"{speeds[1]:.2f}x ({speeds[1] - 0.1:.2f} to" in judged.text


def test_some_gamma():
  won = {"gamma": 3}
  lost = {"draft": "base", "verify_ratio": 1.8} | speed(0.85, "decode")
  assert claims_speed.some_gamma(walltime(won)).verdict == HOLDS
  judged = claims_speed.some_gamma(walltime(won, lost))
  assert judged.verdict == PARTLY
  assert "base at temperature 0 has none" in judged.text
  assert "1.70 tokens for 1.85 steps gain nothing" in judged.text
  assert "has none" not in claims_speed.some_gamma(walltime(won)).text
  cheap = lost | {"verify_ratio": 1.2}
  assert "gain nothing" not in claims_speed.some_gamma(walltime(cheap)).text
  # A median above 1 is no proof.
  close = lost | speed(1.05, "decode")
  judged = claims_speed.some_gamma(walltime(close))
  assert judged.verdict == OPEN
  assert "surely faster, encoders left out, for 0 of 1 pairs" in judged.text
  assert "leaves it open: 1.05x (0.95 to 1.15) with gamma 1" in judged.text
  assert claims_speed.some_gamma(walltime(won, close)).verdict == PARTLY
  # Another gamma that is sure to be faster, if by less, decides.
  sure = close | {"gamma": 3, "decode_speed": 1.02, "decode_low": 1.01}
  assert claims_speed.some_gamma(walltime(close, sure)).verdict == HOLDS
  # Where alpha is below c, nothing is claimed.
  assert claims_speed.some_gamma(walltime({"alpha": 0.01})) is None


def test_the_bound_of_one_token():
  # (1 + 0.7) / 1.05 = 1.62
  assert claims_speed.guaranteed(walltime({})).verdict == HOLDS
  judged = claims_speed.guaranteed(walltime({}, speed(1.5, "decode")))
  assert judged.verdict == PARTLY
  assert "1 of 2 pairs" in judged.text
  judged = claims_speed.guaranteed(walltime(speed(1.65, "decode")))
  assert judged.verdict == OPEN
  assert "0 of 1 pairs" in judged.text
  assert claims_speed.guaranteed(walltime({"gamma": 2})) is None


def test_free_verification():
  judge = claims_speed.free_verification
  assert judge(walltime({})).verdict == HOLDS
  dear = {"gamma": 7, "verify_ratio": 1.7}
  judged = judge(walltime({}, dear))
  assert judged.verdict == PARTLY
  assert "v(1) = 1.05, v(7) = 1.70" in judged.text
  assert judge(walltime(dear)).verdict == FAILS


def test_smallest_drafts():
  base = {"draft": "base"} | speed(1.8)
  assert claims_speed.small_drafts(walltime({}, base)).verdict == HOLDS
  judged = claims_speed.small_drafts(walltime({}, base | speed(2.15)))
  assert judged.verdict == OPEN
  assert (
      "though the ranges of the smallest and of another overlap" in judged.text
  )
  faster = base | speed(2.9)
  judged = claims_speed.small_drafts(walltime({}, faster))
  assert judged.verdict == FAILS
  assert "the fastest model draft is base (2.90x" in judged.text
  assert claims_speed.small_drafts(walltime({})) is None
  # Not measured at the same temperature.
  elsewhere = base | {"temperature": 1.0}
  assert claims_speed.small_drafts(walltime({}, elsewhere)) is None


def errors(**of):
  return evidence(
      errors={
          form.replace("_", " "): {
              "form": form,
              "cells": 8,
              "mean_error": error,
              "mean_absolute_error": abs(error),
          }
          for form, error in of.items()
      }
  )


def test_predictions():
  rest = dict(c_and_v=0.05, places=0.04, all_steps=0.03)
  assert claims_speed.predicted(errors(c=0.05, **rest)).verdict == HOLDS
  judged = claims_speed.predicted(errors(c=0.3, **rest))
  assert judged.verdict == PARTLY
  assert "too high by 30.0%" in judged.text
  assert (
      "too low by 30.0%" in claims_speed.predicted(errors(c=-0.3, **rest)).text
  )
  far = dict.fromkeys(("c", "c_and_v", "places", "all_steps"), 0.4)
  assert claims_speed.predicted(errors(**far)).verdict == FAILS


def test_theory_holds_and_would_be_seen_not_to(monkeypatch):
  assert claims_speed.theory_finding().verdict == HOLDS
  rows = claims_speed.theory_tables.table1()
  wrong = [row | {"speed": row["speed"] + 0.1} for row in rows]
  monkeypatch.setattr(claims_speed.theory_tables, "table1", lambda: wrong)
  finding = claims_speed.theory_finding()
  assert finding.verdict == PARTLY
  assert "Table 1: 6 of 12 values" in finding.judgements[""].text
  assert "6 of 12 values are printed so" in paper_notes.notes([])["table1"]

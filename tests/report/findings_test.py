"""Findings: the words follow the numbers, whichever way these fall."""

import pytest
import toy_results

from spec_t5x.report import (
    claims_acceptance,
    claims_reprojection,
    claims_speed,
    findings,
    paper_notes,
    paper_tables,
)
from spec_t5x.report.findings import (
    FAILS,
    HOLDS,
    OPEN,
    PARTLY,
    Evidence,
    Judgement,
)


def alphas(draft, greedy, sampled):
  """A row of alphas, each known to 0.01."""
  row = {"draft": draft}
  for key, value in (("alpha_t0", greedy), ("alpha_t1", sampled)):
    row |= {key: value, f"{key}_low": value - 0.01, f"{key}_high": value + 0.01}
  return row


ALPHAS = [
    alphas("unigram", 0.1, 0.1),
    alphas("bigram", 0.2, 0.15),
    alphas("small", 0.7, 0.6),
]
WALLTIME = {
    "task": "ende",
    "draft": "small",
    "temperature": 0.0,
    "gamma": 1,
    "alpha": 0.7,
    "cost_coefficient": 0.05,
    "verify_ratio": 1.05,
    "measured_speed": 2.1,
    "measured_low": 2.0,
    "measured_high": 2.2,
    "decode_speed": 2.2,
    "decode_low": 2.1,
    "decode_high": 2.3,
    "predicted_speed": 2.3,
    "predicted_speed_measured_v": 2.2,
    "paper_speed": 3.4,
    "device": "a machine",
}


def evidence(**rows):
  """Evidence of these rows alone."""
  made = Evidence(None)
  for name, value in rows.items():
    # A cached property is read from the instance once it is there.
    made.__dict__[name] = value
  return made


def speed(value, which="measured"):
  """A speed whose passes are 0.1 around it."""
  return {
      f"{which}_speed": value,
      f"{which}_low": value - 0.1,
      f"{which}_high": value + 0.1,
  }


def walltime(*changes):
  return evidence(walltime=[WALLTIME | change for change in changes])


def test_exactness():
  sampled = {
      "temperature": 1,
      "metric": "BLEU",
      "quality": 20.0,
      "difference_low": -1.0,
      "difference_high": 0.5,
  }
  worse = sampled | {"difference_high": -0.1}
  unscored = {"temperature": 1, "quality": None}
  judge = lambda same, *qualities: claims_acceptance.exactness(
      evidence(greedy_texts=(same, 9), qualities=qualities)
  )
  judged = judge(9, sampled, worse)
  assert judged.verdict == HOLDS
  assert "with 1 of 2 drafts and temperatures they score as" in judged.text
  assert "Sampled" not in judge(9, unscored).text
  judged = judge(8, sampled)
  assert judged.verdict == PARTLY
  assert "8 of 9 texts decoded at temperature 0" in judged.text
  assert "tie within rounding" in judged.text
  judge = claims_acceptance.exactness
  assert judge(evidence(greedy_texts=(0, 0), qualities=[])) is None


def test_order_of_drafts():
  judged = claims_acceptance.order(evidence(alpha=ALPHAS))
  assert judged.verdict == HOLDS
  assert "4 of 4 steps" in judged.text
  fallen = [*ALPHAS[:2], alphas("small", 0.15, 0.6)]
  judged = claims_acceptance.order(evidence(alpha=fallen))
  assert judged.verdict == PARTLY
  assert "3 of 4 steps" in judged.text
  turned = [alphas("unigram", 0.7, 0.6), alphas("small", 0.2, 0.1)]
  assert claims_acceptance.order(evidence(alpha=turned)).verdict == FAILS
  close = [ALPHAS[1], alphas("small", 0.21, 0.16)]
  judged = claims_acceptance.order(evidence(alpha=close))
  assert judged.verdict == OPEN
  assert "for 2 the 95% intervals overlap" in judged.text
  assert claims_acceptance.order(evidence(alpha=ALPHAS[:1])) is None


def test_sharper_laws_name_the_exceptions():
  judged = claims_acceptance.sharper(evidence(alpha=ALPHAS))
  assert judged.verdict == PARTLY
  words = (
      "Undecided, as the 95% intervals overlap: unigram (0.10 against 0.10)."
  )
  assert words in judged.text
  turned = alphas("base", 0.5, 0.6)
  judged = claims_acceptance.sharper(evidence(alpha=[*ALPHAS[1:], turned]))
  assert judged.verdict == PARTLY
  assert "Not so: base (0.50 against 0.60)." in judged.text
  judged = claims_acceptance.sharper(evidence(alpha=ALPHAS[1:]))
  assert judged == Judgement(
      HOLDS, "2 of 2 drafts have the greater alpha at temperature 0."
  )


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
  assert (
      "in every timed pass, encoders left out, for 0 of 1 pairs" in judged.text
  )
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
  assert "though passes of the smallest and of another overlap" in judged.text
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


def positions(p_value, first, later):
  rates = dict(draft="small", temperature=0, gamma=2, p_value=p_value)
  return evidence(
      positions=[
          rates | {"tested": 100, "accepted": first, "rate": first / 100},
          rates | {"tested": 50, "accepted": later, "rate": later / 50},
      ],
      predictions=[{"tokens_alike": 2.2, "tokens_measured": 2.0}],
  )


def test_acceptances_alike():
  judged = claims_acceptance.alike(positions(0.5, 60, 31))
  assert judged.verdict == HOLDS
  assert "10.0% more tokens" in judged.text
  assert "In 1 of 1 cells the later places" in judged.text
  judged = claims_acceptance.alike(positions(1e-5, 60, 20))
  assert judged.verdict == FAILS
  assert "In 0 of 1 cells the later places" in judged.text


def test_negligible_drafts():
  table = {"draft": "bigram", "alpha": 0.2}
  judge = claims_acceptance.negligible_drafts
  assert judge(walltime(table | speed(1.2))).verdict == HOLDS
  assert judge(walltime(table | speed(1.0))).verdict == OPEN
  assert judge(walltime(table | speed(0.8))).verdict == FAILS
  assert judge(walltime({})) is None


def test_lenient_speed():
  row = dict(draft="small", temperature=1, difference=None)
  exact = row | {"lenience": 1.0} | speed(1.5)
  judge = lambda *lenient: claims_acceptance.lenient_speed(
      evidence(
          lenience=[exact, *(row | {"lenience": 0.1} | x for x in lenient)]
      )
  )
  judged = judge(speed(1.9))
  assert judged.verdict == HOLDS
  assert "1.50x exact, 1.90x with lenience 0.1." in judged.text
  assert judge(speed(1.6)).verdict == OPEN
  assert judge(speed(1.1)).verdict == FAILS
  assert judge() is None
  scored = {
      "difference": -9.0,
      "target_quality": 30.0,
      "speculative_quality": 21.0,
  }
  assert "score 21.0 where the target's score 30.0" in (
      judge(speed(1.9) | scored).text
  )


@pytest.mark.parametrize("hoisted", [True, False])
def test_reprojection_is_judged_by_what_the_compiler_did(tmp_path, hoisted):
  run = toy_results.write_reprojection(tmp_path, hoisted=hoisted)
  judged = claims_reprojection.reprojection(Evidence(run))
  assert "takes 1.30 times as long as plain" in judged.text
  assert ("moves them in front of it" in judged.text) == hoisted
  assert ("leaves 8 of 8 projections" in judged.text) == (not hoisted)
  assert judged.verdict == (FAILS if hoisted else PARTLY)
  # From the printed table: 3.1 / 2.4 of T5-small is the greatest.
  assert "CNNDM 1.06 to 1.29" in judged.text


def test_reprojection_on_a_tpu_is_predicted_not_measured():
  programs = {
      projection: {
          "matmuls_in_loops": 40,
          "projections": 8,
          "device": "TPU v4, not run",
      }
      for projection in ("once", "as_written")
  }
  work = [
      {
          "length": 512,
          "step_ratio": 1.3,
          "step_ms": 10.0,
          "reprojecting_step_ms": 13.0,
      }
  ]
  judged = claims_reprojection.reprojection(
      evidence(reprojection=[], work=work, programs=programs)
  )
  assert "Compiled for TPU v4, not run" in judged.text
  assert "1.30 times as long by the roofline (13.0 ms" in judged.text
  assert judged.verdict == FAILS


def test_theory_holds_and_would_be_seen_not_to(monkeypatch):
  assert claims_speed.theory_finding().verdict == HOLDS
  rows = claims_speed.theory_tables.table1()
  wrong = [row | {"speed": row["speed"] + 0.1} for row in rows]
  monkeypatch.setattr(claims_speed.theory_tables, "table1", lambda: wrong)
  finding = claims_speed.theory_finding()
  assert finding.verdict == PARTLY
  assert "Table 1: 6 of 12 values" in finding.judgements[""].text
  assert "6 of 12 values are printed so" in paper_notes.notes([])["table1"]


def test_runs_that_differ_hold_in_part():
  claim = claims_speed.CLAIMS[0]
  judgements = {
      "a/b": Judgement(HOLDS, "Yes."),
      "a/c": Judgement(FAILS, "No."),
  }
  assert findings.Finding(claim, judgements).verdict == PARTLY
  del judgements["a/c"]
  assert findings.Finding(claim, judgements).verdict == HOLDS


CLAIMS = (
    *claims_acceptance.CLAIMS,
    *claims_speed.CLAIMS,
    *claims_reprojection.CLAIMS,
)


def test_page_of_findings(tmp_path):
  drafts = {"small": "s", "base": "b", "bigram": "ngram:b"}
  runs = [
      toy_results.write(tmp_path, drafts=drafts),
      toy_results.write_reprojection(tmp_path),
  ]
  found = findings.findings(CLAIMS, runs)
  assert not findings.unmeasured(CLAIMS, found)
  theory = claims_speed.theory_finding()
  text = findings.to_markdown(tmp_path, theory, found, ())
  assert text.count("\n## ") == len(CLAIMS) + 1
  # Timed: 3 gammas, 3 drafts, 40 texts; for quality: 3 drafts, 60 texts.
  assert "540 of 540 texts decoded at temperature 0" in text
  # What was not written is not linked.
  assert "](" not in text
  assert "Not measured" not in text
  # A run that did not measure a claim is not named with it.
  assert "`reprojection/toy`: The fastest" not in text


def test_without_runs_only_theory_is_judged(tmp_path):
  found = findings.findings(CLAIMS, [])
  assert found == []
  missing = findings.unmeasured(CLAIMS, found)
  assert len(missing) == len(CLAIMS)
  text = findings.to_markdown(
      tmp_path, claims_speed.theory_finding(), found, missing
  )
  assert "## Not measured yet" in text
  assert text.count("- ") == len(CLAIMS)


def test_papers_tables_hold_every_printed_row(tmp_path):
  runs = [toy_results.write(tmp_path, drafts={"small": "s", "trigram": "t"})]
  assert len(paper_tables.table2(runs).body) == 12
  assert len(paper_tables.table4(runs).body) == 12
  ours = [line for line in paper_tables.table2(runs).body if line[-1]]
  assert [line[:4] for line in ours] == [
      ["EnDe", "T5-small", temperature, "7"] for temperature in "01"
  ]
  lines = paper_tables.table3(runs).body
  assert len(lines) == 16 + 1
  assert lines[-1][:2] == ["ours, ende_target", "trigram"]
  assert len(paper_tables.table5(runs).body) == 5
  for table in (paper_tables.table2([]), paper_tables.table3([])):
    assert {column.kind for column in table.columns} >= {"printed", "measured"}


def test_notes_follow_the_numbers(tmp_path):
  notes = paper_notes.notes([])
  assert all("No run of ours" in notes[f"table{n}"] for n in (2, 3, 4, 5))
  run = toy_results.write(tmp_path, drafts={"small": "s"})
  notes = paper_notes.notes([run])
  assert "it costs 1.35 steps" in notes["table2"]
  assert not any("No run of ours" in note for note in notes.values())

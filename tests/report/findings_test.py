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
from spec_t5x.report.findings import FAILS, HOLDS, PARTLY, Evidence, Judgement

ALPHAS = [
    {"draft": "unigram", "alpha_t0": 0.1, "alpha_t1": 0.1},
    {"draft": "bigram", "alpha_t0": 0.2, "alpha_t1": 0.15},
    {"draft": "small", "alpha_t0": 0.7, "alpha_t1": 0.6},
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
  fallen = [*ALPHAS[:2], ALPHAS[2] | {"alpha_t0": 0.15}]
  judged = claims_acceptance.order(evidence(alpha=fallen))
  assert judged.verdict == PARTLY
  assert "3 of 4 steps" in judged.text
  turned = [
      row | {"alpha_t0": -row["alpha_t0"], "alpha_t1": -row["alpha_t1"]}
      for row in ALPHAS
  ]
  assert claims_acceptance.order(evidence(alpha=turned)).verdict == FAILS
  assert claims_acceptance.order(evidence(alpha=ALPHAS[:1])) is None


def test_sharper_laws_name_the_exceptions():
  judged = claims_acceptance.sharper(evidence(alpha=ALPHAS))
  assert judged.verdict == PARTLY
  assert "Not so: unigram (0.10 against 0.10)." in judged.text
  judged = claims_acceptance.sharper(evidence(alpha=ALPHAS[1:]))
  assert judged == Judgement(
      HOLDS, "2 of 2 drafts have the greater alpha at temperature 0."
  )


@pytest.mark.parametrize(
    ("speeds", "verdict"),
    [
        ([(2.1, 2.0), (2.5, 2.4)], HOLDS),
        ([(2.1, 2.0), (1.5, 1.4)], PARTLY),
        ([(2.1, 2.0), (1.01, 0.9)], FAILS),
    ],
)
def test_speed(speeds, verdict):
  judged = claims_speed.faster(
      walltime(
          *(
              {"temperature": t, "measured_speed": speed, "measured_low": low}
              for t, (speed, low) in enumerate(speeds)
          )
      )
  )
  assert judged.verdict == verdict
  assert f"{speeds[1][0]:.2f}x ({speeds[1][1]:.2f} to" in judged.text


def test_some_gamma():
  won = {"gamma": 3}
  lost = {"draft": "base", "decode_speed": 0.9, "verify_ratio": 1.8}
  assert claims_speed.some_gamma(walltime(won)).verdict == HOLDS
  judged = claims_speed.some_gamma(walltime(won, lost))
  assert judged.verdict == PARTLY
  assert "base at temperature 0 has none" in judged.text
  assert "1.70 tokens for 1.85 steps gain nothing" in judged.text
  assert "has none" not in claims_speed.some_gamma(walltime(won)).text
  cheap = lost | {"verify_ratio": 1.2}
  assert "gain nothing" not in claims_speed.some_gamma(walltime(cheap)).text
  # Where alpha is below c, nothing is claimed.
  assert claims_speed.some_gamma(walltime({"alpha": 0.01})) is None


def test_the_bound_of_one_token():
  # (1 + 0.7) / 1.05 = 1.62
  assert claims_speed.guaranteed(walltime({})).verdict == HOLDS
  judged = claims_speed.guaranteed(walltime({}, {"decode_speed": 1.6}))
  assert judged.verdict == PARTLY
  assert "1 of 2 pairs" in judged.text
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
  base = {"draft": "base", "measured_speed": 1.9}
  assert claims_speed.small_drafts(walltime({}, base)).verdict == HOLDS
  faster = base | {"measured_speed": 2.9}
  judged = claims_speed.small_drafts(walltime({}, faster))
  assert judged.verdict == FAILS
  assert "the fastest model draft is base (2.90x" in judged.text
  assert claims_speed.small_drafts(walltime({})) is None


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
  table = {"draft": "bigram", "alpha": 0.2, "measured_low": 1.1}
  judge = claims_acceptance.negligible_drafts
  assert judge(walltime(table)).verdict == HOLDS
  assert judge(walltime(table | {"measured_low": 0.9})).verdict == FAILS
  assert judge(walltime({})) is None


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

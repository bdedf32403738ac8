"""The page of findings."""

import toy_results

from spec_t5x.report import (
    claims_acceptance,
    claims_reprojection,
    claims_speed,
    findings,
)
from spec_t5x.report.findings import FAILS, HOLDS, PARTLY, Judgement


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

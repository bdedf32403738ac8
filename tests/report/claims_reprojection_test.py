"""Whether projecting the encoder's output anew explains speeds."""

import pytest
import toy_results
from toy_evidence import evidence

from spec_t5x.report import claims_reprojection
from spec_t5x.report.findings import FAILS, PARTLY, Evidence


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

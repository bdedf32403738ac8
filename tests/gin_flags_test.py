"""Tests of the scripts' command lines."""

import os
import pathlib
import subprocess
import sys

import gin
import pytest

from spec_t5x import gin_flags

ROOT = pathlib.Path(__file__).parents[1]
CONFIG = """
from __gin__ import dynamic_registration
import fractions
GIVEN = %gin.REQUIRED
NUMERATOR = 5
fractions.Fraction.numerator = %NUMERATOR
fractions.Fraction.denominator = %GIVEN
"""


@pytest.fixture
def config(tmp_path):
  gin.clear_config()
  path = tmp_path / "a.gin"
  path.write_text(CONFIG)
  yield str(path)
  gin.clear_config()


def test_rewrite():
  words = ["prog", "--gin.A=1", '-gin.B="x=--gin.y"', "--gin_file=f", "gin.C"]
  assert gin_flags.rewrite(words) == [
      "prog",
      "--gin_bindings=A=1",
      '--gin_bindings=B="x=--gin.y"',
      "--gin_file=f",
      "gin.C",
  ]


def test_bindings_override_files(config, tmp_path):
  other = tmp_path / "b.gin"
  other.write_text("NUMERATOR = 6")
  gin_flags.parse([config, str(other)], ["GIVEN=7"])
  assert gin.query_parameter("NUMERATOR/macro.value") == 6
  gin.clear_config()
  gin_flags.parse([config, str(other)], ["GIVEN=7", "NUMERATOR = 8"])
  assert gin.query_parameter("NUMERATOR/macro.value") == 8


@pytest.mark.parametrize(
    ("bindings", "message"),
    [
        ([], r"`--gin\.GIVEN` must be given: .*a\.gin has no default"),
        (
            ["GIVE=1"],
            r"`--gin\.GIVE` must name .* GIVEN.* Did you mean GIVEN\?",
        ),
        (["Q=1"], r"`--gin\.Q` must name one of GIVEN, NUMERATOR\.$"),
        (["GIVEN=/a/b"], r'A text needs quotes: --gin\.GIVEN=\\"/a/b\\"$'),
        (["GIVEN=a=b"], r'A text needs quotes: --gin\.GIVEN=\\"a=b\\"$'),
        (
            ["Fraction.nominator=1"],
            "doesn't have a parameter named 'nominator'",
        ),
    ],
)
def test_bad_bindings(config, bindings, message):
  with pytest.raises(ValueError, match=message):
    gin_flags.parse([config], bindings)


def test_bad_files(config, tmp_path):
  with pytest.raises(ValueError, match=r"`--gin_file` must be given"):
    gin_flags.parse([], [])
  with pytest.raises(ValueError, match=r"`--gin_file=missing\.gin` cannot"):
    gin_flags.parse(["missing.gin"], [])
  (tmp_path / "bad.gin").write_text("A = ")
  with pytest.raises(ValueError, match=r"bad\.gin` cannot be used"):
    gin_flags.parse([str(tmp_path / "bad.gin")], [])


def test_interrupted_program_says_how_to_go_on(config):
  script = (
      "from spec_t5x import gin_flags\n"
      "def main(argv): print('begun'); raise KeyboardInterrupt\n"
      "gin_flags.run(main)"
  )
  done = subprocess.run(
      [sys.executable, "-c", script, f"--gin_file={config}", "--gin.GIVEN=7"],
      capture_output=True,
      text=True,
      cwd=ROOT,
  )
  assert done.returncode == 130
  assert done.stdout == "begun\n"
  assert done.stderr == "Stopped. The same command resumes.\n"


JOB = """
import dataclasses, pathlib
from spec_t5x import gin_flags
@dataclasses.dataclass
class Job:
  words: str
  directory: str = "results"
  def execute(self):
    pathlib.Path("done").write_text(self.words)
"""
JOB_CONFIG = """
from __gin__ import dynamic_registration
import job
WORDS = "by default"
job.Job.words = %WORDS
"""


@pytest.mark.parametrize("do", ["", ", lambda job: print(job.words)"])
def test_a_script_does_the_job_that_gin_describes(tmp_path, do):
  (tmp_path / "job.py").write_text(JOB)
  (tmp_path / "job.gin").write_text(JOB_CONFIG)
  (tmp_path / "script.py").write_text(
      f"import job\njob.gin_flags.run_job(job.Job{do})"
  )
  arguments = ["--gin_file=job.gin", "--gin.WORDS='as told'"]
  done = subprocess.run(
      [sys.executable, "script.py", *arguments],
      cwd=tmp_path,
      env={**os.environ, "PYTHONPATH": str(ROOT)},
      capture_output=True,
      text=True,
  )
  assert done.returncode == 0, done.stderr
  if do:
    assert done.stdout == "as told\n"
    assert not (tmp_path / "done").exists()
    return
  assert (tmp_path / "done").read_text() == "as told"
  kept = (tmp_path / "results" / "config.gin").read_text()
  assert "WORDS = 'as told'" in kept


def test_what_gin_was_told_is_kept_beside_results(config, tmp_path):
  gin_flags.parse([config], ["GIVEN=7"])
  gin.get_configurable("fractions.Fraction")()
  gin_flags.save(tmp_path / "results" / "run")
  told, used = (
      (tmp_path / "results" / "run" / f"{name}.gin").read_text()
      for name in ("config", "operative_config")
  )
  assert "GIVEN = 7" in told
  assert "Fraction.numerator = %NUMERATOR" in told
  assert "Fraction.denominator" in used

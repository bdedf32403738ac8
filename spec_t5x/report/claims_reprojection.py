"""Is a re-projecting baseline why the paper's speeds exceed its formula?

Judged by measured rows, and by what the compiler leaves in the loop.
"""

from spec_t5x.report import reference
from spec_t5x.report.findings import FAILS, PARTLY, Claim, Evidence, Judgement


def reprojection(evidence: Evidence) -> Judgement | None:
  """A baseline that re-projects explains speeds above the formula."""
  programs = evidence.programs
  if not programs or not (evidence.reprojection or evidence.work):
    return None
  cost = _measured(evidence) if evidence.reprojection else _predicted(evidence)
  projections = programs["as_written"]["projections"]
  left = (
      programs["as_written"]["matmuls_in_loops"]
      - programs["once"]["matmuls_in_loops"]
  )
  if left > 0:
    text = (
        f"{cost} {_needed()} Of a program written as stock T5X's, with the"
        f" projections in the step, the compiler leaves {left} of"
        f" {projections} projections in the loop: a baseline of that kind does"
        " pay for them."
    )
    return Judgement(PARTLY, text)
  text = (
      f"{cost} {_needed()} But in a program written as stock T5X's, with the"
      f" projections in the step, none of the {projections} stays in the loop:"
      " the compiler moves them in front of it, as they depend on nothing that"
      " changes. So a baseline of that kind does not pay for them in every"
      " step, unless its compiler was less able than this one."
  )
  return Judgement(FAILS, text)


def _measured(evidence: Evidence) -> str:
  longest = evidence.reprojection[-1]
  return (
      f"With {longest['length']} input tokens plain decoding that is made to"
      " project in every step takes"
      f" {longest['plain_ratio_every_step']:.2f} times as long as plain"
      " decoding that projects once. Speculative decoding that projects once"
      f" is {longest['speed_against_reprojecting']:.2f}x against the former and"
      f" {longest['speed_once']:.2f}x against the latter; the formula with c"
      f" says {longest['formula_once']:.2f}x. Written as stock T5X's, and left"
      " to the compiler, plain decoding takes"
      f" {longest['plain_ratio_as_written']:.2f} times as long as ours."
  )


def _predicted(evidence: Evidence) -> str:
  longest = evidence.work[-1]
  return (
      f"Compiled for {evidence.programs['once']['device']}: with"
      f" {longest['length']} input tokens a step that projects would take"
      f" {longest['step_ratio']:.2f} times as long by the roofline"
      f" ({longest['reprojecting_step_ms']:.1f} ms against"
      f" {longest['step_ms']:.1f})."
  )


def _needed() -> str:
  """By how much the paper's own rows are off, task by task."""
  ratios = {}
  for row in reference.table("leviathan_table2_and_4"):
    ratio = float(row["measured_speed"]) / float(row["expected_speed"])
    ratios.setdefault(row["task"], []).append(ratio)
  listed = "; ".join(
      f"{task} {min(of):.2f} to {max(of):.2f}" for task, of in ratios.items()
  )
  return (
      "The paper's measured speeds over its expected ones:"
      f" {listed}. A slower baseline would lift all drafts of a task by one"
      " factor."
  )


CLAIMS = (
    Claim(
        "Speeds above the formula come from a baseline that projects the"
        " encoder's output anew in every step",
        "an explanation of Leviathan et al. 2023, Table 4 (CNN/DM)",
        reprojection,
        tables=(
            "tables/reprojection.md",
            "tables/reprojection_work.md",
            "tables/reprojection_programs.md",
        ),
    ),
)

"""Claims about speed, judged by measured rows."""

import statistics
from collections.abc import Sequence

import numpy as np

from spec_t5x import theory
from spec_t5x.report import prediction_tables, reference, tables, theory_tables
from spec_t5x.report.findings import (
    FAILS,
    HOLDS,
    PARTLY,
    Claim,
    Evidence,
    Finding,
    Judgement,
    Range,
    above,
    judge,
    judge_outcomes,
)
from spec_t5x.report.tables import Row

# A prediction this close, in the mean, is called right.
_CLOSE = 0.1
# A verification of up to so many steps is called free.
FREE = 1.1


def theory_finding() -> Finding:
  """What the paper prints from formulas alone comes out of them."""
  table1, table4 = theory_tables.table1(), theory_tables.table4()
  grid = [row for row in theory_tables.figure3() if row["paper_gamma"]]
  equal = sum(
      f"{row[key]:.2f}" == f"{row[f'paper_{key}']:.2f}"
      for row in table1
      for key in ("operations", "speed")
  )
  same = sum(row["gamma"] == row["paper_gamma"] for row in grid)
  agree = sum(row["agrees"] for row in table4)
  judgement = judge(
      equal + same + agree,
      2 * len(table1) + len(grid) + len(table4),
      f"Table 1: {equal} of {2 * len(table1)} values are the printed ones to"
      f" the last digit. Figure 3: {same} of {len(grid)} points. Table 4:"
      f" {agree} of {len(table4)} expected speeds lie in the range that the"
      " rounding of the printed alpha and c leaves open.",
  )
  claim = Claim(
      "Tables and figures of theory follow from the formulas",
      "Leviathan et al. 2023, Tables 1 and 4, Figure 3",
      lambda evidence: judgement,
      tables=("theory/theory.md",),
  )
  return Finding(claim, {"": judgement})


def faster(evidence: Evidence) -> Judgement | None:
  """Speculative decoding is 2 to 3 times as fast."""
  if not evidence.walltime:
    return None
  printed = [
      float(row["measured_speed"])
      for row in reference.table("leviathan_table2_and_4")
  ]
  temperatures = sorted({row["temperature"] for row in evidence.walltime})
  best = [tables.best(evidence.walltime, t) for t in temperatures]
  outcomes = [above(_range(row, "measured"), (2, 2)) for row in best]
  text = "".join(
      f"The fastest at temperature {row['temperature']:g} is {row['draft']}"
      f" with gamma {row['gamma']}: {row['measured_speed']:.2f}x"
      f" ({row['measured_low']:.2f} to {row['measured_high']:.2f}), on"
      f" {row['device']}. "
      for row in best
  )
  text += (
      f"At {outcomes.count(True)} of {len(best)} temperatures the whole range"
      f" is above twice as fast. The paper's pairs: {min(printed):.1f}x to"
      f" {max(printed):.1f}x."
  )
  return judge_outcomes(outcomes, text)


def _range(row: Row, which: str) -> Range:
  """The range of a speed over texts and passes, see `measures.Walltime`."""
  return row[f"{which}_low"], row[f"{which}_high"]


def some_gamma(evidence: Evidence) -> Judgement | None:
  """If alpha > c, some gamma is faster than plain decoding."""
  groups = {}
  for row in evidence.walltime:
    if row["alpha"] > row["cost_coefficient"]:
      groups.setdefault((row["draft"], row["temperature"]), []).append(row)
  if not groups:
    return None
  # Of each pair the gamma that is surest to be faster.
  best = [max(g, key=lambda row: row["decode_low"]) for g in groups.values()]
  outcomes = [above(_range(row, "decode"), (1, 1)) for row in best]
  text = (
      "Some gamma is surely faster, encoders left out, for"
      f" {outcomes.count(True)} of {len(groups)} pairs of draft and temperature"
      " with alpha above c."
  )
  for row, outcome in zip(best, outcomes, strict=True):
    if outcome is None:
      text += (
          f" {row['draft']} at temperature {row['temperature']:g} leaves it"
          f" open: {row['decode_speed']:.2f}x ({row['decode_low']:.2f} to"
          f" {row['decode_high']:.2f}) with gamma {row['gamma']}."
      )
  lost = [row for row, won in zip(best, outcomes, strict=True) if won is False]
  return judge_outcomes(outcomes, text + _worst_loss(lost))


def _worst_loss(lost: Sequence[Row]) -> str:
  """Why the pair that should have won by most has no faster gamma."""
  if not lost:
    return ""
  row = max(lost, key=lambda row: row["alpha"] - row["cost_coefficient"])
  needed = 1 + row["alpha"]
  needs = row["verify_ratio"] + row["cost_coefficient"]
  text = (
      f" {row['draft']} at temperature {row['temperature']:g} has none: its"
      f" best is {row['decode_speed']:.2f}x with gamma {row['gamma']},"
      f" where a verification costs {row['verify_ratio']:.2f} steps, not 1."
  )
  if row["gamma"] == 1 and needs >= needed:
    text += f" {needed:.2f} tokens for {needs:.2f} steps gain nothing."
  return text


def predicted(evidence: Evidence) -> Judgement | None:
  """Theorem 3.8 foretells the measured speed."""
  errors = evidence.errors
  if not errors:
    return None
  say = lambda form: (
      f"{100 * errors[form]['mean_absolute_error']:.1f}% ({form})"
  )
  listed = ", ".join(map(say, prediction_tables.FORMS))
  text = (
      "Mean absolute error of the predicted speed, encoders left out, over"
      f" {errors['c']['cells']} cells: {listed}. Each form corrects one more"
      " thing than the one before it."
  )
  close = {
      form: row["mean_absolute_error"] <= _CLOSE for form, row in errors.items()
  }
  if close["c"]:
    return Judgement(HOLDS, text)
  bias = errors["c"]["mean_error"]
  text += (
      " With c alone it is too"
      f" {'high' if bias > 0 else 'low'} by {100 * abs(bias):.1f}% in the mean."
  )
  return Judgement(PARTLY if any(close.values()) else FAILS, text)


def free_verification(evidence: Evidence) -> Judgement | None:
  """gamma + 1 parallel evaluations cost one."""
  measured = {}
  for row in evidence.walltime:
    measured.setdefault(row["gamma"], []).append(row["verify_ratio"])
  if not measured:
    return None
  # The target's calls are timed anew beside each draft's.
  ratios = {gamma: statistics.median(of) for gamma, of in measured.items()}
  free = [gamma for gamma, ratio in ratios.items() if ratio <= FREE]
  listed = ", ".join(
      f"v({gamma}) = {ratio:.2f}" for gamma, ratio in sorted(ratios.items())
  )
  device = evidence.walltime[0]["device"]
  return judge(
      len(free),
      len(ratios),
      f"On {device}, in the median: {listed}. Up to {FREE:g} counts as one"
      " here.",
  )


def small_drafts(evidence: Evidence) -> Judgement | None:
  """The smallest of the models is the best draft."""
  roles = ("small", "base", "large")
  rows = [row for row in evidence.walltime if row["draft"] in roles]
  present = {row["draft"] for row in rows}
  smallest = next((role for role in roles if role in present), None)
  outcomes, parts = [], []
  for temperature in sorted({row["temperature"] for row in rows}):
    of = lambda wanted, t=temperature: tables.best(
        [row for row in rows if (row["draft"] == smallest) == wanted], t
    )
    own, other = of(True), of(False)
    if not own or not other:
      continue
    wins = above(_range(own, "measured"), _range(other, "measured"))
    best = max(own, other, key=lambda row: row["measured_speed"])
    outcomes.append(wins)
    parts.append(
        f"At temperature {temperature:g} the fastest model draft is"
        f" {best['draft']} ({best['measured_speed']:.2f}x, alpha"
        f" {best['alpha']:.2f}, c {best['cost_coefficient']:.3f})"
    )
    if wins is None:
      parts[-1] += ", though the ranges of the smallest and of another overlap"
  if not outcomes:
    return None
  return judge_outcomes(outcomes, ". ".join(parts) + ".")


def guaranteed(evidence: Evidence) -> Judgement | None:
  """gamma = 1 gains at least (1 + alpha) / (1 + c)."""
  rows = [
      row
      for row in evidence.walltime
      if row["gamma"] == 1 and row["alpha"] > row["cost_coefficient"]
  ]
  if not rows:
    return None
  bounds = [
      theory.guaranteed_improvement(row["alpha"], row["cost_coefficient"])
      for row in rows
  ]
  outcomes = [
      above(_range(row, "decode"), (bound, bound))
      for row, bound in zip(rows, bounds, strict=True)
  ]
  speeds = [row["decode_speed"] for row in rows]
  shortfall = float(np.mean(np.divide(speeds, bounds)))
  text = (
      f"{outcomes.count(True)} of {len(rows)} pairs are surely above the bound"
      f" with gamma 1, {outcomes.count(None)} perhaps; measured over"
      f" bound is {shortfall:.2f} in the mean. Checking two tokens costs"
      f" {rows[0]['verify_ratio']:.2f} steps here, which the bound takes as 1."
  )
  return judge_outcomes(outcomes, text)


CLAIMS = (
    Claim(
        "Speculative decoding is 2 to 3 times as fast",
        "Leviathan et al. 2023, Table 2",
        faster,
        "speed",
        ("tables/walltime.md",),
    ),
    Claim(
        "If alpha exceeds c, some gamma makes decoding faster",
        "Leviathan et al. 2023, Corollary 3.9",
        some_gamma,
        tables=("tables/walltime.md",),
    ),
    Claim(
        "With gamma = 1 the gain is at least (1 + alpha) / (1 + c)",
        "Leviathan et al. 2023, Corollary 3.9",
        guaranteed,
        tables=("tables/walltime.md",),
    ),
    Claim(
        "Verifying gamma + 1 tokens costs one step of the target",
        "Leviathan et al. 2023, Theorem 3.8 (an assumption)",
        free_verification,
        tables=("tables/walltime.md",),
    ),
    Claim(
        "Theorem 3.8 foretells the speed from alpha and c",
        "Leviathan et al. 2023, A.3 and Table 4",
        predicted,
        "predictions",
        ("tables/prediction_errors.md", "tables/predictions.md"),
    ),
    Claim(
        "The smallest draft model is the best",
        "Leviathan et al. 2023, section 3.6 and Table 2",
        small_drafts,
        tables=("tables/walltime.md",),
    ),
)

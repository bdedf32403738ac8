"""Claims about speed, judged by measured rows."""

import numpy as np

from spec_t5x import theory
from spec_t5x.report import prediction_tables, reference, theory_tables
from spec_t5x.report.findings import (
    FAILS,
    HOLDS,
    PARTLY,
    Claim,
    Evidence,
    Finding,
    Judgement,
    judge,
)

# A prediction this close, in the mean, is called right.
_CLOSE = 0.1
# A verification that costs this much more than a step is called free.
_FREE = 0.1


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
  best = {}
  for row in evidence.walltime:
    known = best.setdefault(row["temperature"], row)
    if row["measured_speed"] > known["measured_speed"]:
      best[row["temperature"]] = row
  text = " ".join(
      f"The fastest at temperature {temperature:g} is {row['draft']} with gamma"
      f" {row['gamma']}: {row['measured_speed']:.2f}x"
      f" ({row['measured_low']:.2f} to {row['measured_high']:.2f}), on"
      f" {row['device']}."
      for temperature, row in sorted(best.items())
  )
  text += f" The paper's pairs: {min(printed):.1f}x to {max(printed):.1f}x."
  speeds = [row["measured_speed"] for row in best.values()]
  if min(speeds) >= 2:
    return Judgement(HOLDS, text)
  faster = min(row["measured_low"] for row in best.values()) > 1
  return Judgement(PARTLY if faster else FAILS, text)


def some_gamma(evidence: Evidence) -> Judgement | None:
  """If alpha > c, some gamma is faster than plain decoding."""
  groups = {}
  for row in evidence.walltime:
    if row["alpha"] > row["cost_coefficient"]:
      groups.setdefault((row["draft"], row["temperature"]), []).append(row)
  if not groups:
    return None
  best = [max(g, key=lambda row: row["decode_speed"]) for g in groups.values()]
  won = [row for row in best if row["decode_speed"] > 1]
  text = (
      f"Of {len(groups)} pairs of draft and temperature with alpha above c,"
      f" {len(won)} have a gamma that is faster, encoders left out."
  )
  if len(won) < len(best):
    lost = max(
        (row for row in best if row not in won),
        key=lambda row: row["alpha"] - row["cost_coefficient"],
    )
    needed = 1 + lost["alpha"]
    needs = lost["verify_ratio"] + lost["cost_coefficient"]
    text += (
        f" {lost['draft']} at temperature {lost['temperature']:g} has none: its"
        f" best is {lost['decode_speed']:.2f}x with gamma {lost['gamma']},"
        f" where a verification costs {lost['verify_ratio']:.2f} steps, not 1."
    )
    if lost["gamma"] == 1 and needs >= needed:
      text += f" {needed:.2f} tokens for {needs:.2f} steps gain nothing."
  return judge(len(won), len(groups), text)


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
  ratios = {row["gamma"]: row["verify_ratio"] for row in evidence.walltime}
  if not ratios:
    return None
  free = [gamma for gamma, ratio in ratios.items() if ratio <= 1 + _FREE]
  listed = ", ".join(
      f"v({gamma}) = {ratio:.2f}" for gamma, ratio in sorted(ratios.items())
  )
  device = evidence.walltime[0]["device"]
  return judge(
      len(free),
      len(ratios),
      f"On {device}: {listed}. Up to {1 + _FREE:g} counts as one here.",
  )


def small_drafts(evidence: Evidence) -> Judgement | None:
  """The smallest of the models is the best draft."""
  roles = ("small", "base", "large")
  rows = [row for row in evidence.walltime if row["draft"] in roles]
  present = {row["draft"] for row in rows}
  if len(present) < 2:
    return None
  smallest = next(role for role in roles if role in present)
  wins, parts = 0, []
  temperatures = sorted({row["temperature"] for row in rows})
  for temperature in temperatures:
    of = [row for row in rows if row["temperature"] == temperature]
    best = max(of, key=lambda row: row["measured_speed"])
    wins += best["draft"] == smallest
    parts.append(
        f"At temperature {temperature:g} the fastest model draft is"
        f" {best['draft']} ({best['measured_speed']:.2f}x, alpha"
        f" {best['alpha']:.2f}, c {best['cost_coefficient']:.3f})."
    )
  return judge(wins, len(temperatures), " ".join(parts))


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
  speeds = [row["decode_speed"] for row in rows]
  reached = int(np.greater_equal(speeds, bounds).sum())
  shortfall = float(np.mean(np.divide(speeds, bounds)))
  text = (
      f"{reached} of {len(rows)} pairs reach the bound with gamma 1; measured"
      f" over bound is {shortfall:.2f} in the mean. Checking two tokens costs"
      f" {rows[0]['verify_ratio']:.2f} steps here, which the bound takes as 1."
  )
  return judge(reached, len(rows), text)


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

"""Claims about acceptance, judged by measured rows."""

from spec_t5x.report import tables
from spec_t5x.report.findings import (
    Claim,
    Evidence,
    Judgement,
    Range,
    above,
    judge,
    judge_outcomes,
)
from spec_t5x.report.tables import Row

# From weak to strong, as the papers rank them.
_RANKS = ("unigram", "bigram", "trigram", "small", "base", "large")
# Tests at which chance alone would be called a difference.
_SIGNIFICANCE = 0.01


def exactness(evidence: Evidence) -> Judgement | None:
  """Greedy texts are the target's."""
  same, total = evidence.greedy_texts
  if not total:
    return None
  text = f"{same} of {total} texts decoded at temperature 0 are the target's."
  if same < total:
    text += (
        " The others may begin at two logits that tie within rounding, which"
        " blocks of different sizes sum in different orders; the tests of the"
        " decoder look at such ties one by one."
    )
  return judge(same, total, text + _sampled(evidence.qualities))


def _sampled(qualities) -> str:
  """How the scores of sampled texts compare with the target's own."""
  scored = [
      about
      for about in qualities
      if about["temperature"] > 0 and about["quality"] is not None
  ]
  if not scored:
    return ""
  alike = sum(
      about["difference_low"] <= 0 <= about["difference_high"]
      for about in scored
  )
  return (
      f" Sampled texts have other tokens; with {alike} of {len(scored)} drafts"
      " and temperatures they score as one sample of the target's own does"
      f" ({scored[0]['metric']}), to within a 95% interval of the difference."
      " All are compared with the same sample, so the differences go together."
  )


def order(evidence: Evidence) -> Judgement | None:
  """Alpha grows with the strength of the draft."""
  rows = {row["draft"]: row for row in evidence.alpha}
  ranked = [rows[draft] for draft in _RANKS if draft in rows]
  if len(ranked) < 2:
    return None
  outcomes, parts = [], []
  for key, temperature in (("alpha_t0", 0), ("alpha_t1", 1)):
    ranges = [_range(row, key) for row in ranked]
    outcomes += map(above, ranges[1:], ranges)
    listed = ", ".join(f"{row['draft']} {row[key]:.2f}" for row in ranked)
    parts.append(f"At temperature {temperature}: {listed}.")
  parts.append(
      f"{outcomes.count(True)} of {len(outcomes)} steps from one draft to the"
      f" next rise; for {outcomes.count(None)} the 95% intervals overlap."
  )
  return judge_outcomes(outcomes, " ".join(parts))


def _range(row: Row, key: str) -> Range:
  """The interval of an estimate."""
  return row[f"{key}_low"], row[f"{key}_high"]


def sharper(evidence: Evidence) -> Judgement | None:
  """Temperature 0 is accepted more often than temperature 1."""
  if not evidence.alpha:
    return None
  outcomes = [
      above(_range(row, "alpha_t0"), _range(row, "alpha_t1"))
      for row in evidence.alpha
  ]
  text = (
      f"{outcomes.count(True)} of {len(outcomes)} drafts have the greater alpha"
      " at temperature 0."
  )
  for outcome, words in (
      (False, "Not so"),
      (None, "Undecided, as the 95% intervals overlap"),
  ):
    listed = ", ".join(
        f"{row['draft']} ({row['alpha_t0']:.2f} against {row['alpha_t1']:.2f})"
        for row, own in zip(evidence.alpha, outcomes, strict=True)
        if own is outcome
    )
    if listed:
      text += f" {words}: {listed}."
  return judge_outcomes(outcomes, text)


def alike(evidence: Evidence) -> Judgement | None:
  """The acceptances of a block are independent and alike."""
  cells = {}
  for row in evidence.positions:
    if row["p_value"] == row["p_value"]:
      key = row["draft"], row["temperature"], row["gamma"]
      cells.setdefault(key, []).append(row)
  if not cells:
    return None
  alike = [
      rows for rows in cells.values() if rows[0]["p_value"] >= _SIGNIFICANCE
  ]
  excess = [
      row["tokens_alike"] / row["tokens_measured"] - 1
      for row in evidence.predictions
  ]
  mean = sum(excess) / len(excess)
  direction = "more" if mean > 0 else "fewer"
  text = (
      f"One acceptance rate for all places in the block fits {len(alike)} of"
      f" {len(cells)} cells (chi-square, p at least {_SIGNIFICANCE:g}; tests of"
      " one text are taken as independent). With one alpha Equation 1 foretells"
      f" {100 * abs(mean):.1f}% {direction} tokens a target call than were"
      " made, in the mean over all cells."
  )
  return judge(len(alike), len(cells), text + _trend(list(cells.values())))


def _trend(cells) -> str:
  """Whether the first place is accepted less or more than those behind it."""
  more = total = 0
  for rows in cells:
    later = rows[1:]
    tested = sum(row["tested"] for row in later)
    if rows[0]["tested"] and tested:
      total += 1
      rate = sum(row["accepted"] for row in later) / tested
      more += rate > rows[0]["rate"]
  return (
      f" In {more} of {total} cells the later places are accepted more often"
      " than the first one."
  )


def lenience(evidence: Evidence) -> Judgement | None:
  """Alpha grows as lenience falls."""
  groups = _by_draft(evidence.lenience)
  if not groups:
    return None
  steps = grown = 0
  for rows in groups:
    values = [row["alpha"] for row in rows]
    steps += len(values) - 1
    grown += sum(a <= b for a, b in zip(values, values[1:], strict=False))
  text = (
      f"In {grown} of {steps} steps to a smaller lenience alpha grows or stays."
  )
  far = max(evidence.lenience, key=lambda row: row["distance"])
  text += (
      f" It is lossy: with lenience {far['lenience']:g} the law of a token that"
      f" {far['draft']} drafted at temperature {far['temperature']:g} is"
      f" {far['distance']:.2f} away from the target's (total variation, 0 to"
      " 1)."
  )
  return judge(grown, steps, text)


def lenient_speed(evidence: Evidence) -> Judgement | None:
  """Lenience brings speed."""
  measured = [row for row in evidence.lenience if row["measured_speed"]]
  pairs = [
      (rows[0], rows[-1])
      for rows in _by_draft(measured)
      if rows[0]["lenience"] == 1
  ]
  if not pairs:
    return None
  outcomes = [
      above(_range(last, "measured"), _range(first, "measured"))
      for first, last in pairs
  ]
  first, last = max(
      pairs,
      key=lambda pair: pair[1]["measured_speed"] / pair[0]["measured_speed"],
  )
  text = (
      "The least lenience is faster than exact decoding for"
      f" {outcomes.count(True)} of {len(pairs)} pairs of draft and temperature;"
      f" for {outcomes.count(None)} the ranges of both overlap. Most for"
      f" {last['draft']} at temperature {last['temperature']:g}:"
      f" {first['measured_speed']:.2f}x exact, {last['measured_speed']:.2f}x"
      f" with lenience {last['lenience']:g}"
  )
  if last["difference"] is not None:
    text += (
        f", whose texts score {last['speculative_quality']:.1f} where the"
        f" target's score {last['target_quality']:.1f}"
    )
  return judge_outcomes(outcomes, text + ".")


def _by_draft(rows):
  """Rows of each draft and temperature, lenience falling."""
  groups = {}
  for row in sorted(rows, key=lambda row: -row["lenience"]):
    groups.setdefault((row["draft"], row["temperature"]), []).append(row)
  return [group for group in groups.values() if len(group) > 1]


def negligible_drafts(evidence: Evidence) -> Judgement | None:
  """Tables of bigrams bring some speed at almost no cost."""
  rows = [row for row in evidence.walltime if row["draft"] == "bigram"]
  if not rows:
    return None
  best = tables.best(rows)
  text = (
      f"The best of the bigram table is {best['measured_speed']:.2f}x"
      f" ({best['measured_low']:.2f} to {best['measured_high']:.2f}; gamma"
      f" {best['gamma']}, temperature {best['temperature']:g}), with alpha"
      f" {best['alpha']:.2f}, c {best['cost_coefficient']:.3f} and v"
      f" {best['verify_ratio']:.2f}. With v = 1 it would be"
      f" {best['predicted_speed']:.2f}x."
  )
  return judge_outcomes([above(_range(best, "measured"), (1, 1))], text)


CLAIMS = (
    Claim(
        "Speculative decoding returns the target's own output",
        "Leviathan et al. 2023, A.1; Chen et al. 2023, Theorem 1",
        exactness,
    ),
    Claim(
        "Stronger drafts are accepted more often: n-grams least, then small,"
        " base, large",
        "Leviathan et al. 2023, Table 3",
        order,
        tables=("tables/alpha.md",),
    ),
    Claim(
        "The sharper law, temperature 0, is accepted more often",
        "Leviathan et al. 2023, section 4.2",
        sharper,
        tables=("tables/alpha.md",),
    ),
    Claim(
        "Acceptances within a block are independent and alike",
        "Leviathan et al. 2023, section 3.1 (a simplifying assumption)",
        alike,
        "positions",
        ("tables/positions.md", "tables/predictions.md"),
    ),
    Claim(
        "A smaller lenience is accepted more often",
        "Leviathan et al. 2023, A.5 and Table 5",
        lenience,
        "lenience",
        ("tables/lenience.md",),
    ),
    Claim(
        "Lenience makes decoding faster",
        "Leviathan et al. 2023, A.5",
        lenient_speed,
        tables=("tables/lenience.md",),
    ),
    Claim(
        "A draft that costs almost nothing, such as a bigram table, still pays",
        "Leviathan et al. 2023, section 3.6",
        negligible_drafts,
        tables=("tables/walltime.md",),
    ),
)

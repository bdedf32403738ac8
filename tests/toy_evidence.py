"""Rows as findings read them, made up."""

from spec_t5x.report.findings import Evidence


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

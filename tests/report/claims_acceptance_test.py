"""Claims about acceptance: the words follow the numbers."""

from toy_evidence import ALPHAS, alphas, evidence, speed, walltime

from spec_t5x.report import claims_acceptance
from spec_t5x.report.findings import FAILS, HOLDS, OPEN, PARTLY, Judgement


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

"""The law of a whole round, enumerated over all drafts and all tests.

Every drafted text and every pattern of passed and failed tests is run through
the library, weighted with the probabilities it reports, and the law of its
next token is measured from outside. Only tables and the continuation by the
target are computed here.
"""

import functools
import itertools

import jax
import numpy as np
import pytest
from jax import numpy as jnp
from measured_laws import law_from, words_below

from spec_t5x import acceptance, verification
from spec_t5x.acceptance import accept_probs, residual_probs
from spec_t5x.verification import verify_block, verify_tokens

LAST_UNIFORM = 1 - 2.0**-24  # the largest float32 below 1
RULES = [verify_tokens, verify_block]
VOCAB = 3


def random_tables(seed, gamma, sparse=False):
  """Laws behind every text of up to gamma tokens, as p[text] and q[text]."""
  rng = np.random.default_rng(seed)

  def law():
    law = rng.dirichlet(np.ones(VOCAB))
    if sparse and rng.random() < 0.5:
      law *= rng.permutation([0, 1, rng.integers(2)])
      law /= law.sum()
    return law.astype(np.float32)

  texts = [text for n in range(gamma + 1) for text in all_texts(n)]
  return {text: law() for text in texts}, {text: law() for text in texts}


def all_texts(length):
  return list(itertools.product(range(VOCAB), repeat=length))


def rows_of(table, texts, length):
  rows = [[table[text[:i]] for i in range(length)] for text in texts]
  return np.array(rows).reshape(len(texts), length, VOCAB)


def probability(table, text):
  """Of `text` under laws given what stands before each token, float64."""
  return np.prod([float(table[text[:i]][x]) for i, x in enumerate(text)])


@functools.partial(jax.jit, static_argnums=0)
def run_patterns(rule, p, q, texts, num_drafted, uniforms):
  """Runs `rule` on every drafted text with every row of uniforms.

  Returns:
    The verdicts, and of the next token `words_below` for token 1, 2, ...
  """
  one = lambda p, q, text, u, d, word: rule(
      p, q, text, u, jnp.stack([jnp.uint32(0), word]), num_drafted=d
  )
  q_axis = None if q is None else 0
  run = jax.vmap(one, (None, None, None, 0, None, 0))
  run = jax.vmap(run, (0, q_axis, 0, None, 0, 0))
  shape = (len(texts), len(uniforms))
  next_token = lambda words: run(
      p, q, texts, uniforms, num_drafted, words
  ).next_token
  first_words = [
      words_below(next_token, jnp.full(shape, token, jnp.int32))
      for token in range(1, VOCAB)
  ]
  zeros = jnp.zeros(shape, jnp.uint32)
  verdicts = run(p, q, texts, uniforms, num_drafted, zeros)
  return verdicts, jnp.stack(first_words)


def enumerate_round(rule, p, q, gamma, num_drafted=None, draft_of=None):
  """Law of the first gamma + 1 tokens when one round is followed by p.

  Args:
    rule: a verification function.
    p: target's tables.
    q: draft's tables; None with `draft_of`.
    gamma: drafted tokens.
    num_drafted: map from a drafted text to how many of its tokens are tested.
    draft_of: the drafted text of a deterministic draft.

  Returns:
    The law as {text: probability}, and the mean number of accepted tokens.
  """
  texts = [draft_of] if q is None else all_texts(gamma)
  counts = [num_drafted(text) if num_drafted else gamma for text in texts]
  patterns = np.array(list(itertools.product([True, False], repeat=gamma)))
  # 0 passes wherever passing is possible, the last uniform fails wherever
  # failing is.
  verdicts, first_words = run_patterns(
      rule,
      rows_of(p, texts, gamma + 1),
      None if q is None else rows_of(q, texts, gamma),
      np.array(texts),
      np.array(counts),
      np.where(patterns, 0, LAST_UNIFORM).astype(np.float32),
  )
  passing = np.asarray(verdicts.accept_prob, np.float64)
  weights = np.where(patterns, passing, 1 - passing).prod(axis=-1)
  next_laws = np.moveaxis(law_from(first_words), 0, -1)

  emitted = {t: 0.0 for n in range(gamma + 2) for t in all_texts(n)}
  mean_accepted = 0.0
  for i, j in zip(*np.nonzero(weights), strict=True):
    drafted = 1.0 if q is None else probability(q, texts[i])
    n = int(verdicts.num_accepted[i, j])
    mean_accepted += drafted * weights[i, j] * n
    for token in range(VOCAB):
      start = (*texts[i][:n], token)
      emitted[start] += drafted * weights[i, j] * next_laws[i, j, token]
  for start in [t for n in range(1, gamma + 1) for t in all_texts(n)]:
    for token in range(VOCAB):
      emitted[*start, token] += emitted[start] * float(p[start][token])
  return {t: emitted[t] for t in all_texts(gamma + 1)}, mean_accepted


def target_law(p, length):
  return {text: probability(p, text) for text in all_texts(length)}


def worst(law, expected):
  assert law.keys() == expected.keys()
  return max(abs(law[text] - expected[text]) for text in expected)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("gamma", [1, 2, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_law_of_a_round_is_the_targets(rule, gamma, sparse):
  for seed in range(4):
    p, q = random_tables(seed, gamma, sparse)
    law, _ = enumerate_round(rule, p, q, gamma)
    assert worst(law, target_law(p, gamma + 1)) < 1e-6


@pytest.mark.parametrize("rule", RULES)
def test_law_of_a_round_with_equal_and_disjoint_laws(rule):
  p, _ = random_tables(0, 2)
  law, accepted = enumerate_round(rule, p, p, 2)
  assert worst(law, target_law(p, 3)) < 1e-6
  assert accepted == pytest.approx(2, abs=1e-6)
  left, right = np.float32([1, 0, 0]), np.float32([0, 0.5, 0.5])
  law, accepted = enumerate_round(
      rule, dict.fromkeys(p, right), dict.fromkeys(p, left), 2
  )
  assert worst(law, target_law(dict.fromkeys(p, right), 3)) < 1e-6
  assert accepted == 0


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("draft_of", [(0, 1, 2), (2, 2, 2)])
def test_law_of_a_round_with_a_point_mass_draft(rule, draft_of):
  for seed in range(3):
    p, _ = random_tables(seed, 3, sparse=seed == 2)
    law, _ = enumerate_round(rule, p, None, 3, draft_of=draft_of)
    assert worst(law, target_law(p, 4)) < 1e-6


# Shortened blocks: by the length limit (the same count for all texts), or by
# a rule that looks at the drafted tokens and keeps the last one it looked at.
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "num_drafted",
    [
        lambda text: 0,
        lambda text: 1,
        lambda text: 2,
        lambda text: text.index(2) + 1 if 2 in text else 3,
    ],
    ids=["none", "one", "two", "stop behind token 2"],
)
def test_law_of_a_shortened_round_is_the_targets(rule, num_drafted):
  p, q = random_tables(5, 3)
  law, _ = enumerate_round(rule, p, q, 3, num_drafted)
  assert worst(law, target_law(p, 4)) < 1e-6


@pytest.mark.parametrize("rule", RULES)
def test_dropping_the_token_looked_at_fails_that_check(rule):
  p, q = random_tables(5, 3)
  drop = lambda text: text.index(2) if 2 in text else 3
  law, _ = enumerate_round(rule, p, q, 3, drop)
  assert worst(law, target_law(p, 4)) > 1e-3


def unclipped_ratio(a, b, empty=0.0):
  return jnp.where(b > 0, a / jnp.where(b > 0, b, 1.0), empty)


FAULTS = {
    "always accept": (
        verify_tokens,
        dict(accept_probs=lambda p, q, x, l: jnp.ones(x.size)),
    ),
    "no residual": (verify_tokens, dict(residual_probs=lambda p, q: p)),
    "ratio swapped": (
        verify_tokens,
        dict(accept_probs=lambda p, q, x, l: accept_probs(q, p, x, l)),
    ),
    "residual swapped": (
        verify_tokens,
        dict(residual_probs=lambda p, q: residual_probs(q, p)),
    ),
    "last test wins, ordinary probabilities": (
        verify_tokens,
        dict(first_rejection=lambda ok: jnp.max(ok * jnp.arange(1, 4))),
    ),
    "block, no residual": (verify_block, dict(residual_probs=lambda p, q: p)),
    "block, products not clipped": (
        verify_block,
        dict(clipped_ratio=unclipped_ratio),
    ),
    "block, residual of the token rule": (
        verify_block,
        dict(
            _verdict=lambda block, accept_prob, n, scaled, bits: _VERDICT(
                block, accept_prob, n, block.p, bits
            )
        ),
    ),
}
_VERDICT = verification._verdict


@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_rounds_fail_that_check(fault, monkeypatch):
  rule, changes = FAULTS[fault]
  for name, replacement in changes.items():
    for module in (acceptance, verification):
      if hasattr(module, name):
        monkeypatch.setattr(module, name, replacement)
  p, q = random_tables(2, 3)
  faulty = lambda *args, **kwargs: rule(*args, **kwargs)  # traced anew
  law, _ = enumerate_round(faulty, p, q, 3)
  assert worst(law, target_law(p, 4)) > 1e-3


# Sun et al. 2024, theorem 2; strictly better in most cases for gamma > 1.
@pytest.mark.parametrize(("gamma", "better"), [(1, 0), (2, 5), (3, 6)])
def test_block_verification_accepts_at_least_as_many(gamma, better):
  gains = []
  for seed in range(8):
    p, q = random_tables(seed, gamma)
    _, tokens = enumerate_round(verify_tokens, p, q, gamma)
    _, block = enumerate_round(verify_block, p, q, gamma)
    gains.append(block - tokens)
  assert min(gains) > -1e-6
  assert np.sum(np.array(gains) > 1e-4) >= better
  if gamma == 1:
    assert max(gains) < 1e-6

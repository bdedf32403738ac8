import jax
import numpy as np
import pytest
from jax import numpy as jnp

from spec_t5x import verification
from spec_t5x.standardize import sample, standardize

verify_tokens = jax.jit(verification.verify_tokens, static_argnames="lenience")
verify_block = jax.jit(verification.verify_block)
verify_greedy = jax.jit(verification.verify_greedy, static_argnames="lenience")
LAST_UNIFORM = 1 - 2.0**-24  # the largest float32 below 1
RULES = [verify_tokens, verify_block]
BITS = jnp.array([1 << 31, 1 << 31], jnp.uint32)

# public bug: draft takes argmax but q = softmax; greedy accepted by p / q of
# the plain softmax. The reported pair of laws.
P = jnp.array([0.3, 0.5, 0.1, 0.1])
Q = jnp.array([0.4, 0.25, 0.2, 0.15])


def random_round(seed, gamma=4, vocab=11, rows=()):
  rng = np.random.default_rng(seed)
  logits = lambda *shape: jnp.asarray(rng.normal(size=shape) * 2, jnp.float32)
  return dict(
      target_probs=standardize(logits(*rows, gamma + 1, vocab)),
      draft_probs=standardize(logits(*rows, gamma, vocab)),
      draft_tokens=jnp.asarray(rng.integers(vocab, size=(*rows, gamma))),
      accept_uniforms=jnp.asarray(rng.random((*rows, gamma)), jnp.float32),
      next_token_bits=jnp.asarray(
          rng.integers(2**32, size=(*rows, 2)), jnp.uint32
      ),
  )


def assert_same(a, b):
  jax.tree.map(np.testing.assert_array_equal, a, b)


# --- scripted verdicts -------------------------------------------------------


# p(x) / q(x) = 0.5 at every position: each uniform decides its own test.
@pytest.mark.parametrize("accepted", [0, 1, 2, 3])
def test_every_accept_length(accepted):
  uniforms = jnp.where(jnp.arange(3) == accepted, 0.5, 0.4999)
  verdict = verify_tokens(
      jnp.tile(jnp.array([0.25, 0.5, 0.25]), (4, 1)),
      jnp.tile(jnp.array([0.5, 0.25, 0.25]), (3, 1)),
      jnp.zeros(3, jnp.int32),
      uniforms,
      BITS,
  )
  assert verdict.num_accepted == accepted
  assert verdict.num_tested == min(accepted + 1, 3)
  np.testing.assert_array_equal(verdict.accept_prob, 0.5)
  np.testing.assert_array_equal(verdict.overlap, 0.75)
  # The residual is one-hot on token 1; the median of p is token 1, too.
  assert verdict.next_token == 1


def test_next_token_behind_a_full_block_is_the_targets():
  target = jax.nn.one_hot(jnp.array([3, 1, 2]), 4)
  draft = target[:2]
  for rule in RULES:
    verdict = rule(target, draft, jnp.array([3, 1]), jnp.zeros(2), BITS)
    assert (verdict.num_accepted, verdict.next_token) == (2, 2)


# public bug: u <= p / q with u in [0, 1) accepts p = 0 at u = 0.
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("draft_probs", [None, Q[None]])
def test_a_token_of_probability_zero_is_rejected_even_by_u_zero(
    rule, draft_probs
):
  p = jnp.array([0.0, 0.5, 0.5, 0.0])
  for token in [0, 3]:
    for word in [0, 2**32 - 1]:
      bits = jnp.full(2, word, jnp.uint32)
      tokens = jnp.array([token])
      verdict = rule(jnp.stack([p, p]), draft_probs, tokens, jnp.zeros(1), bits)
      assert verdict.num_accepted == 0
      assert p[verdict.next_token] > 0


# public bug: accept rate > 1, and draft == target not at exactly 1.
@pytest.mark.parametrize("rule", RULES)
def test_equal_laws_accept_everything(rule):
  p = random_round(0, vocab=3000)["target_probs"]
  tokens = jnp.array([5, 0, 2999, 17])
  uniforms = jnp.full(4, LAST_UNIFORM)
  verdict = rule(p, p[:-1], tokens, uniforms, BITS)
  assert verdict.num_accepted == verdict.num_tested == 4
  np.testing.assert_array_equal(verdict.accept_prob, 1)
  np.testing.assert_allclose(verdict.overlap, 1, atol=1e-6)
  assert verdict.overlap.max() <= 1


# public bug: residual all zero gives NaN ids, or a uniform draw.
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("law", [P, jax.nn.one_hot(2, 4)])
def test_a_residual_without_mass_falls_back_to_the_target(rule, law):
  with jax.debug_nans(True):
    for token in range(4):
      verdict = rule(
          jnp.stack([law, law]),
          law[None],
          jnp.array([token]),
          jnp.array([LAST_UNIFORM]),
          BITS,
      )
      assert law[verdict.next_token] > 0
      assert np.isfinite(verdict.accept_prob).all()


# public bug: greedy accepted by p / q of the plain softmax.
@pytest.mark.parametrize("rule", RULES)
def test_temperature_zero_always_emits_the_targets_argmax(rule):
  p, q = standardize(jnp.log(jnp.stack([P, Q])), 0.0)
  for draft_probs in [None, q[None]]:
    for uniform in [0.0, 0.5, LAST_UNIFORM]:
      verdict = rule(
          jnp.stack([p, p]),
          draft_probs,
          jnp.array([0]),
          jnp.array([uniform]),
          BITS,
      )
      assert (verdict.num_accepted, verdict.next_token) == (0, 1)


# --- relations between the rules ---------------------------------------------


def test_block_equals_tokens_for_one_token():
  for seed in range(20):
    drafted = random_round(seed, gamma=1)
    assert_same(verify_block(**drafted), verify_tokens(**drafted))


def test_block_equals_tokens_for_point_masses():
  drafted = random_round(1) | dict(draft_probs=None)
  assert_same(verify_block(**drafted), verify_tokens(**drafted))


# The reason why: also with the one-hot laws spelled out, every length has
# the same probability under both rules.
def test_block_accepts_as_many_as_tokens_for_one_hot_drafts():
  drafted = random_round(2)
  tokens = drafted["draft_tokens"]
  drafted["draft_probs"] = jax.nn.one_hot(tokens, 11)
  each = np.asarray(verify_block(**drafted).accept_prob, np.float64)
  at_least = 1 - np.cumprod(1 - each[::-1])[::-1]
  alone = verify_tokens(**drafted).accept_prob
  np.testing.assert_allclose(at_least, np.cumprod(alone), atol=1e-6)


def test_point_mass_equals_one_hot_draft_probs():
  for seed in range(10):
    drafted = random_round(seed)
    one_hot = jax.nn.one_hot(drafted["draft_tokens"], 11)
    dense = verify_tokens(**drafted | dict(draft_probs=one_hot))
    sparse = verify_tokens(**drafted | dict(draft_probs=None))
    assert_same(dense, sparse)


@pytest.mark.parametrize("num_drafted", [None, 0, 2])
def test_greedy_equals_tokens_with_one_hot_laws(num_drafted):
  rng = np.random.default_rng(3)
  # Few values: many ties.
  logits = jnp.asarray(rng.integers(3, size=(200, 5, 4)), jnp.float32)
  tokens = jnp.argmax(logits[:, :-1] + rng.integers(2, size=(200, 4, 4)), -1)
  greedy = jax.vmap(lambda l, x: verify_greedy(l, x, num_drafted=num_drafted))(
      logits, tokens
  )
  law = jax.vmap(
      lambda p, x: verify_tokens(
          p, None, x, jnp.full(4, 0.5), BITS, num_drafted=num_drafted
      )
  )(standardize(logits, 0.0), tokens)
  assert_same(greedy, law)
  most = 4 if num_drafted is None else num_drafted
  assert set(greedy.num_accepted.tolist()) == set(range(most + 1))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("point_mass", [False, True])
def test_rows_do_not_see_each_other(rule, point_mass):
  drafted = random_round(4, rows=(6,))
  if point_mass:
    drafted["draft_probs"] = None
  axes = {name: None if x is None else 0 for name, x in drafted.items()}
  batched = jax.vmap(lambda d: rule(**d), in_axes=(axes,))(drafted)
  rows = [
      rule(**{k: None if x is None else x[row] for k, x in drafted.items()})
      for row in range(6)
  ]
  for field, alone in zip(batched, zip(*rows, strict=True), strict=True):
    np.testing.assert_allclose(field, np.stack(alone), atol=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_half_precision_laws_are_read_in_float32(rule):
  drafted = random_round(5)
  half = {
      name: drafted[name].astype(jnp.bfloat16)
      for name in ["target_probs", "draft_probs"]
  }
  single = {name: x.astype(jnp.float32) for name, x in half.items()}
  assert_same(rule(**drafted | half), rule(**drafted | single))


# --- shortened blocks --------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("num_drafted", [0, 1, 3, 4])
def test_what_was_not_drafted_is_not_read(rule, num_drafted):
  drafted = random_round(6)
  n = num_drafted
  expected = rule(**drafted, num_drafted=n)
  spoilt = dict(
      target_probs=drafted["target_probs"].at[n + 1 :].set(jnp.nan),
      draft_probs=drafted["draft_probs"].at[n:].set(jnp.nan),
      draft_tokens=drafted["draft_tokens"].at[n:].set(2**31 - 1),
  )
  actual = rule(**drafted | spoilt, num_drafted=jnp.int32(n))
  assert_same(actual, expected)
  assert expected.num_accepted <= n
  assert expected.num_tested <= n
  assert (expected.accept_prob[n:] == 0).all()
  assert (expected.overlap[n:] == 0).all()


@pytest.mark.parametrize("rule", RULES)
def test_a_shortened_block_equals_a_shorter_one(rule):
  for seed in range(10):
    drafted = random_round(seed)
    cut = dict(
        target_probs=drafted["target_probs"][:3],
        draft_probs=drafted["draft_probs"][:2],
        draft_tokens=drafted["draft_tokens"][:2],
        accept_uniforms=drafted["accept_uniforms"][:2],
    )
    long = rule(**drafted, num_drafted=2)
    short = rule(**drafted | cut)
    assert_same(long[:3], short[:3])
    assert_same(long.accept_prob[:2], short.accept_prob)
    assert_same(long.overlap[:2], short.overlap)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("draft_probs", [None, jnp.zeros((0, 4))])
def test_without_a_draft_the_target_is_sampled(rule, draft_probs):
  nothing = jnp.zeros(0, jnp.int32), jnp.zeros(0)
  verdict = rule(P[None], draft_probs, *nothing, BITS)
  assert verdict.num_accepted == verdict.num_tested == 0
  assert verdict.next_token == sample(P, BITS)
  greedy = verify_greedy(P[None], nothing[0])
  assert (greedy.num_accepted, greedy.next_token) == (0, 1)


# --- lenience ----------------------------------------------------------------


def test_lenient_tokens_accept_more():
  drafted = random_round(7)
  exact = verify_tokens(**drafted)
  lenient = verify_tokens(**drafted, lenience=0.5)
  np.testing.assert_allclose(
      lenient.accept_prob, np.minimum(2 * exact.accept_prob, 1), atol=1e-6
  )
  p, q = drafted["target_probs"][:-1], drafted["draft_probs"]
  expected = jnp.minimum(p / 0.5, q).sum(axis=-1)
  np.testing.assert_allclose(lenient.overlap, expected, atol=1e-6)


# A.5, with the inequality that is meant: p(x) >= l max(p).
@pytest.mark.parametrize(
    ("lenience", "stands"),
    [(1.0, [1, 0, 0, 0]), (0.65, [1, 0, 0, 0]), (0.5, [1, 1, 0, 0])]
    + [(0.3, [1, 1, 0, 0]), (0.2, [1, 1, 1, 0]), (1e-9, [1, 1, 1, 0])],
)
def test_greedy_lenience(lenience, stands):
  logits = jnp.log(jnp.array([0.5, 0.3, 0.12, 0.0]))
  for token in range(4):
    verdict = verify_greedy(
        jnp.stack([logits, logits]), jnp.array([token]), lenience
    )
    assert verdict.num_accepted == stands[token]
    assert verdict.next_token == 0
    np.testing.assert_array_equal(verdict.overlap, stands[token])


def test_greedy_lenience_one_resolves_ties_as_argmax_does():
  logits = jnp.array([[0.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
  verdict = verify_greedy(logits, jnp.array([2]), 1.0)
  assert (verdict.num_accepted, verdict.next_token) == (0, 1)
  assert verify_greedy(logits, jnp.array([2]), 0.99).num_accepted == 1


# --- bad input ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            dict(draft_probs=jnp.zeros((4, 10))),
            r"`draft_probs` must have shape \(gamma, vocab\) = \(4, 11\)."
            r" Got \(4, 10\).",
        ),
        (
            dict(target_probs=jnp.zeros((4, 11))),
            r"\(gamma \+ 1, vocab\) = \(5, 11\) values. Got \(4, 11\).",
        ),
        (
            dict(accept_uniforms=jnp.zeros(3)),
            r"`accept_uniforms` must have shape \(gamma,\) = \(4,\)."
            r" Got \(3,\).",
        ),
        (dict(next_token_bits=jnp.float32(0.5)), "`bits` must be uint32"),
    ],
)
@pytest.mark.parametrize("rule", RULES)
def test_bad_shapes_are_named(rule, change, message):
  with pytest.raises(ValueError, match=message):
    rule(**random_round(0) | change)


@pytest.mark.parametrize("lenience", [0.0, -1, 1.5, np.nan])
def test_bad_lenience_is_named(lenience):
  message = r"`lenience` must be in \(0, 1\], 1 = exact. Got "
  with pytest.raises(ValueError, match=message):
    verify_tokens(**random_round(0), lenience=lenience)
  with pytest.raises(ValueError, match=message):
    verify_greedy(jnp.zeros((2, 3)), jnp.zeros(1, int), lenience)

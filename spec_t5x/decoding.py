"""The decoding loop: plain and speculative, one jitted `while_loop`.

Two texts in flight, gamma = 3, "." unknown, | the last known token, which
neither model has read yet:

  tokens   BOS the|  .    .    .    .    .     index 1
           BOS a    cat| .    .    .    .      index 2
  draft    BOS the| quick red  fox
           BOS a    cat| sat  on   a
  target   reads the four tokens from | on and gives four laws
  verdict  "quick" accepted, "red" rejected, "brown" drawn instead; row 2
           accepts all three, and a fourth token comes from the last law
  tokens   BOS the  quick brown| .    .    .   index 3
           BOS a    cat  sat  on   a    mat|   index 6

What stands right of | is never read as known and never cleared. With gamma = 0
the target reads one token and one token is drawn: plain decoding.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, UInt32

from spec_t5x import texts, verification
from spec_t5x.decoding_types import (
    Contexts,
    Decoded,
    Models,
    Rows,
    Settings,
    Weights,
)
from spec_t5x.law import Law, has_law
from spec_t5x.loop_state import State, emit, no_counts
from spec_t5x.types import PAD_ID, Proposal


def start(
    models: Models, weights: Weights, inputs: Int[Array, "batch inputs"]
) -> Contexts:
  """Encodes the inputs with both models."""
  draft = None
  if models.draft:
    draft = models.draft.start(weights.draft, inputs)
  return Contexts(models.target.start(weights.target, inputs), draft)


def generate(
    models: Models,
    settings: Settings,
    weights: Weights,
    contexts: Contexts,
    rows: Rows,
) -> Decoded:
  """Decodes every row to EOS or to its limit.

  The law of a row's tokens is exactly the target's for `lenience` 1
  (Leviathan et al. 2023, A.1), whatever the draft, and depends on nothing
  but its own input, key, temperature and limit.

  Args:
    models: target and draft.
    settings: static settings.
    weights: parameters of both.
    contexts: as returned by `start`, one row per input.
    rows: prompts, limits, temperatures, keys.

  Returns:
    Tokens, log-probabilities and counts.
  """
  contexts = jax.tree.map(
      lambda x: jnp.repeat(x, settings.num_decodes, axis=0), contexts
  )
  state = prefill(models, settings, weights, contexts, rows)
  running = lambda state: ~jnp.all(state.finished)
  step = lambda state: iterate(
      models, settings, weights, contexts, rows, state
  )[0]
  return _result(settings, jax.lax.while_loop(running, step, state))


def iterate(
    models: Models,
    settings: Settings,
    weights: Weights,
    contexts: Contexts,
    rows: Rows,
    state: State,
) -> tuple[State, Proposal]:
  """One round of draft and verification (Leviathan et al. 2023, section 2.3).

  Args:
    models: target and draft.
    settings: static settings.
    weights: parameters of both.
    contexts: as returned by `start`, one row per decode.
    rows: prompts, limits, temperatures, keys.
    state: as returned by `prefill` or by the previous round.

  Returns:
    The state, and what was drafted: of the drafted tokens the state keeps
    those that stand.
  """
  law = Law(rows.temperature, settings.sampling, models.target.vocab_size)
  words = _random_words(rows.keys, state.iteration, models.gamma)
  proposal, draft_cache = _propose(models, weights, contexts, state, law, words)
  tokens = texts.write_block(state.tokens, state.index + 1, proposal.tokens)
  block = texts.read_block(tokens, state.index, models.gamma + 1)
  raw, target_cache = models.target.extend(
      weights.target, contexts.target, state.target_cache, block, state.index
  )
  logits = law.adjust(raw, tokens, state.index + 1)
  room = rows.limit - state.index
  verdict, probs = _verify(settings, law, logits, proposal, words, room)
  state = state._replace(
      tokens=tokens,
      target_cache=target_cache,
      draft_cache=draft_cache,
      finite=state.finite & (state.finished | _finite(logits, proposal)),
      iteration=state.iteration + 1,
  )
  state = emit(settings, state, proposal, verdict, logits, probs, room)
  return state, proposal


def decode(
    models: Models,
    settings: Settings,
    weights: Weights,
    inputs: Int[Array, "batch inputs"],
    rows: Rows,
) -> Decoded:
  """Encodes and decodes; see `start` and `generate`."""
  contexts = start(models, weights, inputs)
  return generate(models, settings, weights, contexts, rows)


def prefill(
    models: Models,
    settings: Settings,
    weights: Weights,
    contexts: Contexts,
    rows: Rows,
) -> State:
  """Returns buffers with BOS and the prompts written and read.

  Args:
    models: target and draft.
    settings: static settings.
    weights: parameters of both.
    contexts: as returned by `start`, one row per decode.
    rows: prompts, limits, temperatures, keys.
  """
  batch, width = rows.prompt.shape
  gamma = models.gamma
  # A finished row stands at `max_length`. The block that it goes on to read
  # reaches gamma positions further, the one that it writes gamma + 1.
  length = settings.max_length + gamma + 2
  tokens = jnp.full((batch, length), PAD_ID, "int32")
  tokens = tokens.at[:, 1 : width + 1].set(rows.prompt)
  target_cache = models.target.init_cache(batch, length)
  draft_cache = models.draft.init_cache(batch, length) if models.draft else ()
  if width:
    # Rows with shorter prompts get padding cached behind theirs: it is
    # overwritten before it is ever visible.
    known = tokens[:, :width]
    _, target_cache = models.target.extend(
        weights.target,
        contexts.target,
        target_cache,
        known,
        jnp.zeros(batch, "int32"),
    )
    if models.draft:
      draft_cache = models.draft.prefill(
          weights.draft, contexts.draft, draft_cache, known
      )
  index = jnp.sum(rows.prompt != PAD_ID, axis=1, dtype="int32")
  return State(
      tokens=tokens,
      token_log_probs=jnp.zeros((batch, length)),
      index=index,
      finished=index >= rows.limit,
      finite=jnp.ones(batch, bool),
      target_cache=target_cache,
      draft_cache=draft_cache,
      counts=no_counts(batch, gamma),
      iteration=jnp.zeros((), "int32"),
  )


class _Words(NamedTuple):
  """Random numbers of one iteration; no two uses share any."""

  draft: UInt32[Array, "rows gamma 2"]
  accept: Float[Array, "rows gamma"]
  next_token: UInt32[Array, "rows 2"]


def _random_words(
    keys: Key[Array, " rows"], iteration: Int[Array, ""], gamma: int
) -> _Words:
  """Draws from the stream of (row, iteration).

  Not of the absolute position: block verification looks at positions past
  the last accepted one, and seeing their numbers again would bias it.
  """
  draw = lambda key: jax.random.bits(
      jax.random.fold_in(key, iteration), (3 * gamma + 2,), "uint32"
  )
  words = jax.vmap(draw)(keys)
  draft, accept, next_token = jnp.split(words, [2 * gamma, 3 * gamma], axis=1)
  return _Words(
      draft=draft.reshape(keys.size, gamma, 2),
      # The 24 bits that float32 holds: uniform on [0, 1), 1 excluded.
      accept=(accept >> 8).astype("float32") * 2.0**-24,
      next_token=next_token,
  )


def _propose(models, weights, contexts, state: State, law: Law, words: _Words):
  """Asks the draft, if there is one."""
  if not models.draft:
    nothing = jnp.zeros((state.index.size, 0), "int32")
    return Proposal(nothing, None), state.draft_cache
  return models.draft.propose(
      weights.draft,
      contexts.draft,
      state.draft_cache,
      state.tokens,
      state.index,
      law,
      words.draft,
  )


def _verify(settings, law: Law, logits, proposal, words: _Words, room):
  """Returns the verdict and, unless all rows are greedy, the target's laws.

  Drafted tokens for which a row has no room left are not tested: they say
  nothing about the draft.
  """
  gamma = proposal.tokens.shape[1]
  num_drafted = jnp.minimum(room, gamma)
  if proposal.num_drafted is not None:
    num_drafted = jnp.minimum(num_drafted, proposal.num_drafted)
  if law.sampling.greedy:
    verify = lambda logits, tokens, num_drafted: verification.verify_greedy(
        logits, tokens, settings.lenience, num_drafted
    )
    verdict = jax.vmap(verify)(logits, proposal.tokens, num_drafted)
    return verdict, None
  probs = law.probs(logits)
  verify = verification.verify_tokens
  if settings.block_verification:
    verify = verification.verify_block
  elif settings.lenience < 1:
    verify = functools.partial(verify, lenience=settings.lenience)
  verdict = jax.vmap(verify)(
      probs,
      proposal.probs,
      proposal.tokens,
      words.accept,
      words.next_token,
      num_drafted=num_drafted,
  )
  return verdict, probs


def _finite(logits, proposal: Proposal) -> Bool[Array, " rows"]:
  """Whether every position has a law, the draft's and the target's."""
  finite = has_law(logits).all(axis=1)
  return finite if proposal.finite is None else finite & proposal.finite


def _result(settings, state: State) -> Decoded:
  """Cuts the buffers to the texts and blanks what was never known."""
  place = jnp.arange(1, settings.max_length + 1)
  known = place <= state.index[:, None]
  text = slice(1, settings.max_length + 1)
  return Decoded(
      tokens=jnp.where(known, state.tokens[:, text], PAD_ID),
      token_log_probs=jnp.where(known, state.token_log_probs[:, text], 0.0),
      finite=state.finite,
      counts=state.counts,
  )

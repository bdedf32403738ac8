"""From a model's logits to the law tokens are drawn from, for both models."""

import dataclasses

import jax
import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Float, Int, UInt32

from spec_t5x import standardize
from spec_t5x.types import LogitCallback


@dataclasses.dataclass(frozen=True)
class Sampling:
  """How tokens are drawn; fixed at compile time.

  Attributes:
    greedy: every row decodes by argmax; no law is computed at all.
    top_k: keep the k most probable tokens, 0 for all.
    top_p: keep the nucleus of this mass, 0 for all.
    num_ids: ids from here on are padding of the vocabulary, never emitted.
    logit_callback: changes logits before anything else, or None.
  """

  greedy: bool
  num_ids: int
  top_k: int = 0
  top_p: float = 0.0
  logit_callback: LogitCallback | None = None


@struct.dataclass
class Law:
  """The sampling settings together with each row's temperature.

  Attributes:
    temperature: one per row.
    sampling: the static part.
    width: number of logits per position, that of the target.
  """

  temperature: Float[Array, " batch"]
  sampling: Sampling = struct.field(pytree_node=False)
  width: int = struct.field(pytree_node=False)

  def adjust(
      self,
      logits: Float[Array, "batch block ids"],
      tokens: Int[Array, "batch length"],
      index: Int[Array, " batch"],
  ) -> Float[Array, "batch block vocab"]:
    """Bans padded ids and applies the callback at every position.

    Target and draft may pad one vocabulary to different sizes (T5: 32100,
    32128): the draft's logits are cut or filled to the target's width.

    Args:
      logits: `logits[b, i]` is for position `index[b] + i`.
      tokens: the texts, the drafted tokens included.
      index: position of the first token that the logits decide.

    Returns:
      Logits of the target's width, -inf at ids that are never emitted.
    """
    missing = self.width - logits.shape[-1]
    if missing > 0:
      fill = ((0, 0), (0, 0), (0, missing))
      logits = jnp.pad(logits, fill, constant_values=-jnp.inf)
    logits = logits[..., : self.width]
    if self.sampling.num_ids < self.width:
      real = jnp.arange(self.width) < self.sampling.num_ids
      logits = jnp.where(real, logits, -jnp.inf)
    callback = self.sampling.logit_callback
    if callback is None:
      return logits
    places = range(logits.shape[1])
    return jnp.stack(
        [callback(logits[:, i], tokens, index + i) for i in places], axis=1
    )

  def probs(
      self, logits: Float[Array, "batch block vocab"]
  ) -> Float[Array, "batch block vocab"]:
    """Standardises adjusted logits (Leviathan et al. 2023, section 2.2)."""
    return standardize.standardize(
        logits,
        self.temperature[:, None],
        self.sampling.top_k,
        self.sampling.top_p,
    )

  def draw(
      self,
      logits: Float[Array, "batch vocab"],
      bits: UInt32[Array, "batch 2"],
  ) -> tuple[Int[Array, " batch"], Float[Array, "batch vocab"] | None]:
    """Draws a token for each row.

    Args:
      logits: adjusted.
      bits: random words.

    Returns:
      The tokens and the law they were drawn from, None if all are greedy.
    """
    if self.sampling.greedy:
      return standardize.argmax(logits), None
    probs = self.probs(logits[:, None])[:, 0]
    return standardize.sample(probs, bits), probs


def has_law(
    logits: Float[Array, "*rows vocab"],
) -> Bool[Array, "*rows"]:
  """Whether logits tell a law: NaN and +inf spoil it, -inf bans an id."""
  return jnp.isfinite(logits.max(axis=-1))


def log_prob(
    logits: Float[Array, "*rows vocab"], tokens: Int[Array, "*rows"]
) -> Float[Array, "*rows"]:
  """Log-probability of each token under the softmax of `logits`, nats."""
  chosen = jnp.take_along_axis(logits, tokens[..., None], axis=-1)[..., 0]
  return chosen - jax.nn.logsumexp(logits, axis=-1)

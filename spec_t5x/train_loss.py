"""What a model in training is told: the tokens, or another model's laws."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def token_loss(
    logits: Float[Array, "batch length vocab"],
    targets: Int[Array, "batch length"],
    z_loss: float = 1e-4,
) -> tuple[Float[Array, ""], Float[Array, ""], Int[Array, ""]]:
  """Sums cross-entropy over the tokens that are not padding.

  Args:
    logits: float32.
    targets: id 0 is padding.
    z_loss: weight of T5's penalty on the squared log-normaliser.

  Returns:
    The training loss (cross-entropy plus z-loss) and the plain cross-entropy,
    both in nats summed over tokens, and the token count.
  """
  weights = targets > 0
  log_z = jax.nn.logsumexp(logits, axis=-1)
  chosen = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
  nats = jnp.sum((log_z - chosen) * weights)
  penalty = z_loss * jnp.sum(jnp.square(log_z) * weights)
  return nats + penalty, nats, jnp.sum(weights)


def imitation_loss(
    logits: Float[Array, "batch length vocab"],
    law: Float[Array, "batch length vocab"],
    targets: Int[Array, "batch length"],
) -> Float[Array, ""]:
  """Sums how far a draft's laws are from its target's, at every token.

  Half of it is the cross-entropy of the target's law, which teaches from the
  first step on; half is the total variation, 1 - sum(min(p, q)): that is the
  chance of a rejection (Leviathan et al. 2023, corollary 3.6), what a draft
  should have least of, and of little slope while both laws hardly meet
  (Zhou et al. 2023, "DistillSpec").

  Args:
    logits: the draft's, float32.
    law: the target's, p.
    targets: the tokens that both have read; id 0 is padding.

  Returns:
    The sum over the tokens that are not padding.
  """
  log_q = jax.nn.log_softmax(logits)
  cross_entropy = -jnp.sum(law * log_q, axis=-1)
  distance = 1.0 - jnp.sum(jnp.minimum(law, jnp.exp(log_q)), axis=-1)
  return jnp.sum(0.5 * (cross_entropy + distance) * (targets > 0))

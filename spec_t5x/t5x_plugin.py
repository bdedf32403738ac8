"""Speculative decoding for T5X: models and checkpoints to be bound by gin.

  MODEL = @t5x_plugin.SpeculativeModel()
  utils.RestoreCheckpointConfig.checkpoint_manager_cls =
      @t5x_plugin.PairedCheckpointManager

`configs/t5x/infer.gin` does, and T5X's own `infer.py` runs it. Target and
draft are T5X's networks with T5X's checkpoints; only decoding is this
package's. In the train state the target's parameters keep their names, and
the draft's stand under `draft`, so that T5X's partitioner shards, casts and
keeps both.

This is the only file that imports T5X.
"""

import functools
import os
from collections.abc import Mapping, MutableMapping
from typing import Any

import jax
import jax.numpy as jnp
from flax.core import freeze
from t5x import checkpoints, models, partitioning, utils
from t5x import interactive_model as interactive_model_lib
from t5x import train_state as train_state_lib

from spec_t5x.t5x_decode_fn import speculative_decode_fn
from spec_t5x.t5x_model import (
    Speculative,
    join_params,
    select,
    split_params,
    split_state,
)
from spec_t5x.types import PAD_ID, Params, PRNGKey

__all__ = [
    "PairedCheckpointManager",
    "SpeculativeDecoderOnlyModel",
    "SpeculativeModel",
    "require_orbax",
    "restore_pair",
    "speculative_decode_fn",
]

Batch = Mapping[str, jax.Array]


class SpeculativeModel(Speculative, models.EncoderDecoderModel):
  """T5X's encoder-decoder model, decoding with a draft.

  Arguments are T5X's and those of `t5x_model.Speculative`. Everything but
  `predict_batch` and `predict_batch_with_aux` is T5X's.
  """

  def predict_batch_with_aux(
      self,
      params: Params,
      batch: Batch,
      rng: PRNGKey | None = None,
      decoder_params: MutableMapping[str, Any] | None = None,
      return_all_decodes: bool | None = None,
      num_decodes: int | None = None,
      prompt_with_targets: bool = False,
  ) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Decodes a batch; see T5X.

    Args:
      params: of the target, the draft's under `draft`.
      batch: features of `seqio.EncDecFeatureConverter`.
      rng: of all random numbers; or `decoder_params['decode_rng']`.
      decoder_params: fields of `DecodeOptions`, by name.
      return_all_decodes: return all decodes rather than the best.
      num_decodes: independent decodes of each input.
      prompt_with_targets: whether texts begin with the targets. A prompt ends
        at its first PAD or EOS.

    Returns:
      Tokens [batch, length] or [batch, num_decodes, length], sorted by rising
      score, and for each of them `scores` and the statistics of
      `t5x_decoding`: alpha, block_efficiency, iterations, emitted, tested,
      accepted, accept_counts [gamma + 1], finite.

    Raises:
      ValueError: an option is unknown or out of range.
    """
    if self.decodes_as_t5x:
      return super().predict_batch_with_aux(
          freeze(split_params(params)[0]),
          batch,
          rng,
          decoder_params,
          return_all_decodes,
          num_decodes,
          prompt_with_targets,
      )
    defaults = self._default_decoder_params
    if return_all_decodes is None:
      return_all_decodes = defaults.return_all_decodes
    if num_decodes is None:
      num_decodes = defaults.num_decodes
    prompts = batch["decoder_input_tokens"]
    prompts = prompts * (prompts != self.output_vocabulary.eos_id)
    samples = self.sample(
        params,
        rng,
        decoder_params,
        batch["encoder_input_tokens"],
        prompts,
        num_decodes,
        forced=prompt_with_targets,
    )
    return select(samples, return_all_decodes)


class SpeculativeDecoderOnlyModel(Speculative, models.DecoderOnlyModel):
  """T5X's decoder-only model, decoding with a draft."""

  def __init__(self, *args, decode_fn=None, **kwargs):
    """Checks the pair; arguments and errors as of `Speculative`."""
    if kwargs.get("inputs_bidirectional_attention") and decode_fn is None:
      raise ValueError(
          "`inputs_bidirectional_attention` must be False without `decode_fn`:"
          " the speculative loop reads prompts causally."
      )
    super().__init__(*args, decode_fn=decode_fn, **kwargs)

  def predict_batch_with_aux(
      self,
      params: Params,
      batch: Batch,
      rng: PRNGKey | None = None,
      *,
      return_all_decodes: bool = False,
      num_decodes: int = 1,
      decoder_params: MutableMapping[str, Any] | None = None,
  ) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Continues the inputs of a batch; see `SpeculativeModel`.

    Args:
      params: of the target, the draft's under `draft`.
      batch: features of `seqio.DecoderFeatureConverter`, inputs and targets.
      rng: of all random numbers; or `decoder_params['decode_rng']`.
      return_all_decodes: return all decodes rather than the best.
      num_decodes: independent decodes of each input.
      decoder_params: fields of `DecodeOptions`, by name.

    Raises:
      ValueError: the batch has no inputs, or an option is out of range.
    """
    if self.decodes_as_t5x:
      return super().predict_batch_with_aux(
          freeze(split_params(params)[0]),
          batch,
          rng,
          return_all_decodes=return_all_decodes,
          num_decodes=num_decodes,
          decoder_params=decoder_params,
      )
    if "decoder_causal_attention" not in batch:
      raise ValueError(
          "`batch` must have the feature `decoder_causal_attention`; it has"
          " if `task_feature_lengths` names both `inputs` and `targets`."
      )
    tokens = batch["decoder_input_tokens"]
    prompts = tokens * batch["decoder_causal_attention"]
    samples = self.sample(
        params,
        rng,
        decoder_params,
        jnp.zeros((len(tokens), 0), "int32"),
        prompts,
        num_decodes,
        forced=True,
    )
    tokens, aux = select(samples, return_all_decodes)
    lengths = jnp.sum(prompts[:, 1:] != PAD_ID, axis=1)
    return models.remove_prefix(tokens, lengths), aux


class PairedCheckpointManager(checkpoints.OrbaxCheckpointManagerInterface):
  """Restores target and draft from a checkpoint each, legacy or Orbax.

  Both are read, cast and sharded by T5X, as any checkpoint.
  """

  def __init__(
      self,
      directory: str,
      train_state: train_state_lib.TrainState,
      partitioner: partitioning.BasePartitioner,
      *args,
      draft_path: str | None = None,
      **kwargs,
  ):
    """Takes what T5X's manager takes, and a path.

    Args:
      directory: of the target's checkpoints.
      train_state: shapes of the pair's train state, without optimizer.
      partitioner: see T5X.
      *args: see T5X.
      draft_path: the draft's `checkpoint_<step>` directory; None for a draft
        without parameters.
      **kwargs: see T5X.

    Raises:
      ValueError: there is a draft model and no path, or a path and no draft
        model, or an optimizer.
    """
    target, draft = split_state(train_state)
    if (draft is None) != (draft_path is None):
      raise ValueError(
          "`PairedCheckpointManager.draft_path` must be given iff the model has"
          f" a `draft_module`. Got {draft_path!r}."
      )
    super().__init__(directory, target, partitioner, *args, **kwargs)
    self._draft_path, self._draft_manager = draft_path, None
    if draft is not None:
      kwargs.pop("dataset_iterator", None)
      self._draft_manager = checkpoints.OrbaxCheckpointManagerInterface(
          os.path.dirname(os.path.normpath(draft_path)),
          draft,
          partitioner,
          *args,
          **kwargs,
      )

  def restore(self, *args, fallback_state=None, **kwargs):
    """Restores target and draft; see T5X."""
    if fallback_state is not None:
      target, _ = split_params(fallback_state["target"])
      fallback_state = {**fallback_state, "target": target}
    state = super().restore(*args, fallback_state=fallback_state, **kwargs)
    return self._with_draft(state)

  def restore_from_tf_checkpoint(self, *args, **kwargs):
    """Restores the target from Mesh TensorFlow, and the draft; see T5X."""
    return self._with_draft(super().restore_from_tf_checkpoint(*args, **kwargs))

  def _with_draft(self, state):
    if self._draft_manager is None:
      return state
    draft = self._draft_manager.restore(path=self._draft_path)
    return state.replace(
        params=join_params(state.params, draft.params),
        params_axes=join_params(state.params_axes, draft.params_axes),
    )


def require_orbax(**unused) -> None:
  """Stands where a checkpointer would that knows one path only.

  Raises:
    ValueError: always.
  """
  del unused
  raise ValueError(
      "`use_orbax` must be True: only `PairedCheckpointManager` restores two"
      " checkpoints. It reads legacy ones, too."
  )


def restore_pair(
    interactive_model: interactive_model_lib.InteractiveModel,
    path: str,
    draft_path: str | None,
    dtype: str | None = "bfloat16",
) -> None:
  """Restores target and draft into an `InteractiveModel`.

  T5X's interactive model restores one legacy checkpoint. Make it with a
  speculative model and `checkpoint_path=None`, then call this.

  Args:
    interactive_model: where the parameters go.
    path: the target's `checkpoint_<step>` directory, legacy or Orbax.
    draft_path: the draft's; None for a draft without parameters.
    dtype: of the parameters; None for the files'.
  """
  cfg = utils.RestoreCheckpointConfig(
      path=path,
      mode="specific",
      dtype=dtype,
      strict=False,
      checkpoint_manager_cls=functools.partial(
          PairedCheckpointManager, draft_path=draft_path
      ),
  )
  state, _ = utils.create_checkpoint_manager_and_restore(
      interactive_model._train_state_initializer,
      interactive_model.partitioner,
      cfg,
      path,
      fallback_init_rng=None,
      use_orbax=True,
  )
  interactive_model._train_state = state
  interactive_model.trainer.train_state = state

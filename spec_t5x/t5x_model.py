"""What T5X's models get to decode speculatively; `t5x_plugin` binds it.

Nothing here imports T5X.
"""

import copy
import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jax
from flax import linen as nn
from flax.core import freeze, unfreeze

from spec_t5x import inputs, placement, t5x_decoding
from spec_t5x.decoding_types import Weights
from spec_t5x.draft import load_draft
from spec_t5x.drafts import ModelDraft, NgramTable, PromptLookup
from spec_t5x.t5x_options import DecodeOptions
from spec_t5x.types import Draft, Params, PRNGKey

# A draft without a checkpoint, or the name of one, see `draft`.
LooseDraft = NgramTable | PromptLookup | str

# Where the draft's parameters stand in the tree of the target's.
DRAFT = "draft"


def split_params(params: Params) -> tuple[Params, Params]:
  """Returns the parameters of target and of draft; the latter may be None."""
  target = dict(unfreeze(params))
  return target, target.pop(DRAFT, None)


def join_params(target: Params, draft: Params | None) -> Params:
  """Returns the tree that `split_params` splits."""
  return freeze(unfreeze(target) | ({DRAFT: unfreeze(draft)} if draft else {}))


def split_state(state):
  """Returns the train states of target and of draft; the latter may be None.

  Raises:
    ValueError: the state has an optimizer.
  """
  params, draft_params = split_params(state.params)
  if draft_params is None:
    return state, None
  if not any(field.name == "params" for field in dataclasses.fields(state)):
    raise ValueError(
        "`optimizer_def` must be None with a `draft_module`: pairs are for"
        " inference."
    )
  axes, draft_axes = split_params(state.params_axes)
  split = lambda params, axes: state.replace(
      params=freeze(params), params_axes=freeze(axes)
  )
  return split(params, axes), split(draft_params, draft_axes)


def _loaded(draft: LooseDraft | None) -> NgramTable | PromptLookup | None:
  """Loads a draft that is given by its name.

  Raises:
    ValueError: it is a model.
  """
  if isinstance(draft, str) and draft.partition(":")[0] in ("lookup", "ngram"):
    return load_draft(draft)
  if draft is not None and not isinstance(draft, NgramTable | PromptLookup):
    raise ValueError(
        "`draft` must be an NgramTable, a PromptLookup, 'lookup', 'lookup:N' or"
        f" 'ngram:FILE'; a model is a `draft_module`. Got {draft!r}."
    )
  return draft


def place_loose(
    draft: LooseDraft | None, gamma: int
) -> tuple[Draft | None, Params]:
  """Returns a draft without a checkpoint as the loop sees it.

  Raises:
    ValueError: it is a model.
  """
  draft = _loaded(draft) if gamma else None
  return placement.place_draft(draft, gamma, None, "replicated")


class Speculative:
  """What T5X's two kinds of models get; a base class before T5X's own."""

  def __init__(
      self,
      *args,
      optimizer_def: Any = None,
      draft_module: nn.Module | None = None,
      draft: LooseDraft | None = None,
      options: DecodeOptions | None = None,
      decode_fn: Callable[..., Any] | None = None,
      **kwargs,
  ):
    """Checks the pair.

    Args:
      *args: of T5X's class; `module`, by name or place, is the target, a
        network of `t5x.examples.t5` or `t5x.examples.decoder_only`.
      optimizer_def: see T5X; None for inference.
      draft_module: the draft, another such network; its parameters are a
        second checkpoint, restored by `PairedCheckpointManager`.
      draft: instead of it, a draft without a checkpoint: an `NgramTable`, a
        `PromptLookup`, or 'lookup', 'lookup:N' or 'ngram:FILE'.
      options: how to decode; by default T5X's defaults, that is argmax.
        `decoder_params` override them call by call.
      decode_fn: None decodes by the speculative loop, plainly without a
        draft. T5X's functions, such as `beam_search`, can be had without a
        draft, and then decode as ever.
      **kwargs: of T5X's class.

    Raises:
      ValueError: the networks are others or do not match, or arguments
        exclude each other.
      NotImplementedError: `decode_fn` with a draft.
    """
    super().__init__(
        *args, optimizer_def=optimizer_def, decode_fn=decode_fn, **kwargs
    )
    has_draft = draft_module is not None or draft is not None
    if draft_module is not None and draft is not None:
      raise ValueError("`draft_module` and `draft` must not both be given.")
    if decode_fn is not None and has_draft:
      function = inspect.unwrap(getattr(decode_fn, "func", decode_fn))
      raise NotImplementedError(
          "`decode_fn` must be None with `draft_module` or `draft`. Got"
          f" `{function.__name__}`, which has no speculative form."
      )
    self.options = options or DecodeOptions()
    self._draft_module, self._draft = draft_module, _loaded(draft)
    self.decodes_as_t5x = decode_fn is not None
    if not self.decodes_as_t5x:
      self._config = t5x_decoding.model_config(self.module, "module")
      if isinstance(self._draft, NgramTable):
        size = self._draft.vocab_size
        inputs.check_vocab_size("draft", size, self._config.vocab_size)
    if draft_module is not None:
      self._draft_config = t5x_decoding.model_config(
          draft_module, "draft_module"
      )
      t5x_decoding.check_pair(self._config, self._draft_config)

  def get_initial_variables(self, rng, input_shapes, input_types=None):
    """See T5X; with a draft model, its variables are under `draft`."""
    initial = super().get_initial_variables.__func__
    shapes = (rng, input_shapes, input_types)
    variables = initial(self, *shapes)
    if not self.decodes_as_t5x:
      t5x_decoding.check_params(variables["params"], self._config, "module")
    if self._draft_module is None:
      return variables
    model = copy.copy(self)
    model.module = self._draft_module
    draft = initial(model, *shapes)
    t5x_decoding.check_params(
        draft["params"], self._draft_config, "draft_module"
    )
    return freeze(
        {name: join_params(variables[name], draft[name]) for name in variables}
    )

  def _compute_logits(self, params, batch, *args, **kwargs):
    """See T5X; training and scoring are the target's alone."""
    return super()._compute_logits(
        freeze(split_params(params)[0]), batch, *args, **kwargs
    )

  def sample(
      self,
      params: Params,
      rng: PRNGKey | None,
      decoder_params: Mapping[str, Any] | None,
      encoder_tokens: jax.Array,
      prompts: jax.Array,
      num_decodes: int,
      forced: bool,
  ) -> t5x_decoding.Samples:
    """Decodes by the speculative loop."""
    options = self._options_of(rng, decoder_params or {})
    target, draft_params = split_params(params)
    draft, draft_params = self._place_draft(draft_params, options.gamma)
    return t5x_decoding.sample(
        t5x_decoding.scorer(self._config),
        draft,
        Weights(target, draft_params),
        options,
        encoder_tokens,
        prompts,
        num_decodes,
        forced,
    )

  def _place_draft(
      self, params: Params | None, gamma: int
  ) -> tuple[Draft | None, Params]:
    if not gamma or self._draft_module is None:
      return place_loose(self._draft, gamma)
    if params is None:
      raise ValueError(
          "`params` must hold the draft's parameters under 'draft'. To"
          " restore them, bind `RestoreCheckpointConfig"
          ".checkpoint_manager_cls = @PairedCheckpointManager`."
      )
    scorer = t5x_decoding.scorer(self._draft_config)
    return ModelDraft(scorer, gamma), params

  def _options_of(self, rng, decoder_params) -> DecodeOptions:
    options = self.options.updated(
        {
            "eos_id": self.output_vocabulary.eos_id or 1,
            **decoder_params,
        }
    )
    if rng is None:
      return options
    if options.decode_rng is not None:
      raise ValueError(
          "`rng` and `decoder_params['decode_rng']` must not both be given."
      )
    return options.updated({"decode_rng": rng})


def select(samples: t5x_decoding.Samples, return_all_decodes: bool):
  """Returns tokens and aux of all decodes, or of the best of each input."""
  tokens, aux = samples.tokens, {"scores": samples.scores, **samples.aux}
  if return_all_decodes:
    return tokens, aux
  return jax.tree.map(lambda x: x[:, -1], (tokens, aux))

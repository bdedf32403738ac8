"""`Decoder`: speculative decoding of texts in two lines."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jax.sharding import Mesh
from jaxtyping import Int

from spec_t5x import inputs, placement, standardize
from spec_t5x.decode_result import DecodeResult, make_result
from spec_t5x.decoding_types import Models, Rows, Settings, Weights
from spec_t5x.draft import AnyDraft
from spec_t5x.law import Sampling
from spec_t5x.model import Model
from spec_t5x.types import EOS_ID, PAD_ID, LogitCallback
from spec_t5x.vocabulary import Vocabulary


class Request(NamedTuple):
  """A checked batch: with `Decoder.models` and `weights`, all of a decode.

  Attributes:
    settings: what the loop is compiled for.
    ids: token ids of the inputs.
    rows: prompts, limits, temperatures and keys.
  """

  settings: Settings
  ids: Int[np.ndarray, "batch inputs"]
  rows: Rows


class Decoder:
  """Decodes with a target, faster with a draft; same output law either way.

  Attributes:
    models: target and draft as the loop sees them.
    weights: their parameters, in the layout that decodes fastest here.
    mesh: devices that they lie on; None for one.

  Example:
    >>> decoder = Decoder(load("target"), load("draft"), gamma=5)
    >>> decoder(["Open the file."]).texts
    ['Öffnen Sie die Datei.']
  """

  def __init__(
      self,
      target: Model,
      draft: AnyDraft | None = None,
      *,
      gamma: int = 5,
      temperature: float | Sequence[float] = 0.0,
      top_k: int = 0,
      top_p: float = 0.0,
      lenience: float = 1.0,
      num_decodes: int = 1,
      max_decode_steps: int = 128,
      seed: int = 0,
      prefix: str = "",
      rescale_log_probs: bool = True,
      logit_callback: LogitCallback | None = None,
      block_verification: bool = False,
      vocab_size: int | None = None,
      mesh: Mesh | None = None,
      draft_sharding: str = "replicated",
  ):
    """Checks the settings; compilation happens at the first call.

    Args:
      target: the model whose law is sampled.
      draft: a smaller model of the same vocabulary, an `NgramTable` of its
        ids, or a `PromptLookup`; None for plain decoding.
      gamma: tokens drafted in one iteration; 0 for plain decoding.
      temperature: one, or one per input; below 1e-4 is argmax.
      top_k: keep the k most probable tokens; 0 = off.
      top_p: keep the nucleus of this mass; 0 = off.
      lenience: 1 is exact; less accepts more and changes the law (A.5).
      num_decodes: independent decodes of each input.
      max_decode_steps: most tokens decoded, forced prompt not counted.
      seed: of all random numbers.
      prefix: put before each text, such as 'translate English to German: '.
      rescale_log_probs: log-probabilities under the standardised law (T5X's
        default; all 0 at temperature 0, but -inf for other tokens than the
        argmax, which `lenience` may let through) or the plain softmax.
      logit_callback: changes logits before sampling; see
        `types.LogitCallback`. Applied at every position, to both models.
      block_verification: verify blocks as a whole (Sun et al. 2024); exact,
        and accepts more at temperature > 0.
      vocab_size: ids from here on are padding and never emitted; by default
        what the vocabulary tells, or else the smaller model's size.
      mesh: devices to decode on, see `partitioning`; None for one.
      draft_sharding: on a mesh, whether each device holds the draft whole
        ('replicated') or a part of it, as of the target ('sharded').

    Raises:
      ValueError: an argument is out of range, the models do not match, or the
        mesh does not divide one.
    """
    if not isinstance(target, Model):
      raise ValueError(
          f"`target` must be a model, as `spec_t5x.load` gives. Got {target!r}."
      )
    inputs.check_settings(
        gamma, lenience, block_verification, num_decodes, max_decode_steps
    )
    standardize.validate_sampling(temperature, top_k, top_p)
    if draft is None:
      gamma = 0
    elif gamma == 0:
      draft = None
    self._target = target
    self._num_ids = inputs.num_ids(target, draft, vocab_size)
    self._temperature = temperature
    self._max_decode_steps = max_decode_steps
    self._seed, self._prefix = seed, prefix
    self._sampling = Sampling(
        greedy=False,
        num_ids=self._num_ids,
        top_k=top_k,
        top_p=0.0 if top_p == 1 else top_p,
        logit_callback=logit_callback,
    )
    self._settings = Settings(
        max_length=max_decode_steps,
        sampling=self._sampling,
        num_decodes=num_decodes,
        lenience=lenience,
        block_verification=block_verification,
        rescale_log_probs=rescale_log_probs,
    )
    pair = (
        placement.place_target(target, mesh),
        placement.place_draft(draft, gamma, mesh, draft_sharding),
    )
    scorers, params = zip(*pair, strict=True)
    self.models, self.weights = Models(*scorers), Weights(*params)
    self.mesh = mesh
    self._decode = placement.jit_decode(mesh)

  @property
  def gamma(self) -> int:
    """Tokens drafted in one iteration; 0 for plain decoding."""
    return self.models.gamma

  @property
  def vocabulary(self) -> Vocabulary | None:
    """The target's vocabulary."""
    return self._target.vocabulary

  def encode(self, texts: Sequence[str]) -> list[list[int]]:
    """Token ids of texts, prefix and EOS included.

    Raises:
      ValueError: the target has no vocabulary.
    """
    if self.vocabulary is None:
      raise ValueError(
          "`texts` must be token ids, as the target"
          f" {self._target.name!r} has no vocabulary. Got texts."
      )
    end = [] if self._target.config.decoder_only else [EOS_ID]
    return [self.vocabulary.encode(self._prefix + text) + end for text in texts]

  def __call__(
      self,
      texts: (
          Sequence[str]
          | Sequence[Sequence[int]]
          | Int[np.ndarray, "batch length"]
      ),
      *,
      prompts: Sequence[Sequence[int]] | None = None,
      temperature: float | Sequence[float] | None = None,
      example_ids: Sequence[int] | None = None,
  ) -> DecodeResult:
    """Decodes a batch.

    Args:
      texts: texts, or token ids with EOS, padded with 0 or ragged. For a
        decoder-only target they are the prompts.
      prompts: token ids that each decode must begin with (encoder-decoder).
      temperature: instead of the decoder's; one, or one per input.
      example_ids: one integer per input, which with the seed fixes its random
        numbers, whatever else is in the batch. By default 0, 1, 2...

    Returns:
      Tokens, texts, log-probabilities and statistics.

    Raises:
      ValueError: an input is malformed.
      FloatingPointError: a model's logits are not finite; names the inputs.
    """
    request = self.prepare(texts, prompts, temperature, example_ids)
    decoded = self._decode(
        self.models, request.settings, self.weights, request.ids, request.rows
    )
    return make_result(
        decoded, request.settings.num_decodes, example_ids, self.vocabulary
    )

  def prepare(
      self, texts, prompts=None, temperature=None, example_ids=None
  ) -> Request:
    """Checks and converts the arguments of a call; see `__call__`."""
    ids = self._input_ids(texts)
    decoder_only = self._target.config.decoder_only
    if decoder_only and prompts is not None:
      raise ValueError(
          "`prompts` must be None for a decoder-only target: its inputs are"
          " prompts."
      )
    if decoder_only:
      ids, prompts = np.zeros((len(ids), 0), np.int32), ids
    else:
      prompts = self._prompt_ids(prompts, len(ids))
      ids = inputs.pad_to(ids)
    settings, rows = self._rows(prompts, temperature, example_ids)
    return Request(settings, ids, rows)

  def _input_ids(self, texts) -> Int[np.ndarray, "batch length"]:
    if texts is None or isinstance(texts, str):
      raise ValueError(
          f"`texts` must be a list of texts or of token ids. Got {texts!r}."
      )
    if len(texts) == 0:
      raise ValueError("`texts` must hold at least one input. Got none.")
    if isinstance(texts[0], str):
      texts = self.encode(texts)
    return inputs.token_array("texts", texts, self._num_ids)

  def _prompt_ids(self, prompts, batch: int) -> Int[np.ndarray, "batch prompt"]:
    if prompts is None:
      return np.zeros((batch, 0), np.int32)
    if len(prompts) != batch:
      raise ValueError(
          f"`prompts` must have one entry per input, {batch}."
          f" Got {len(prompts)}."
      )
    return inputs.token_array("prompts", prompts, self._num_ids)

  def _rows(self, prompts, temperature, example_ids) -> tuple[Settings, Rows]:
    batch, num_decodes = len(prompts), self._settings.num_decodes
    known = prompts != PAD_ID
    if (known[:, 1:] & ~known[:, :-1]).any():
      raise ValueError(
          "`prompts` must not hold PAD (0) before another token."
          f" Got {prompts[(known[:, 1:] & ~known[:, :-1]).any(axis=1)][0]}."
      )
    if temperature is None:
      temperature = self._temperature
    sampling = self._sampling
    standardize.validate_sampling(temperature, sampling.top_k, sampling.top_p)
    temperature = np.asarray(temperature, np.float32)
    if temperature.shape not in ((), (batch,)):
      raise ValueError(
          f"`temperature` must be one number or one per input, {batch}."
          f" Got shape {temperature.shape}."
      )
    temperature = np.broadcast_to(temperature, (batch,))
    is_greedy = temperature <= standardize.GREEDY_TEMPERATURE
    if self._settings.lenience < 1 and is_greedy.any() and not is_greedy.all():
      raise ValueError(
          "`temperature` must be 0 for all inputs or for none if `lenience` is"
          f" below 1. Got {temperature}."
      )
    if example_ids is None:
      example_ids = np.arange(batch)
    inputs.check_example_ids(example_ids, batch)
    settings = dataclasses.replace(
        self._settings,
        max_length=prompts.shape[1] + self._max_decode_steps,
        sampling=dataclasses.replace(sampling, greedy=bool(is_greedy.all())),
    )
    repeat = lambda x: np.repeat(x, num_decodes, axis=0)
    return settings, Rows(
        prompt=repeat(prompts),
        limit=repeat(known.sum(axis=1) + self._max_decode_steps),
        temperature=repeat(temperature),
        keys=inputs.row_keys(self._seed, example_ids, num_decodes),
    )

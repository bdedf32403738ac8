"""Checks of the decoder's arguments, and their conversion to arrays."""

from collections.abc import Sequence

import jax
import numpy as np
from jaxtyping import Array, Int, Key

from spec_t5x import acceptance
from spec_t5x.decoding_types import Counts
from spec_t5x.draft import AnyDraft
from spec_t5x.drafts import NgramTable, PromptLookup
from spec_t5x.model import Model
from spec_t5x.statistics import DecodeStatistics
from spec_t5x.types import PAD_ID

# Inputs are padded to a multiple of this.
INPUT_MULTIPLE = 16

# Models may pad one vocabulary to different sizes, at most this much apart.
MAX_PADDING = 128


def check_settings(
    gamma: int,
    lenience: float,
    block_verification: bool,
    num_decodes: int,
    max_decode_steps: int,
) -> None:
  """Raises ValueError for a setting out of range."""
  for name, value, least in (
      ("gamma", gamma, 0),
      ("num_decodes", num_decodes, 1),
      ("max_decode_steps", max_decode_steps, 1),
  ):
    is_int = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_int or value < least:
      raise ValueError(
          f"`{name}` must be an integer, at least {least}. Got {value!r}."
      )
  acceptance.check_lenience(lenience)
  if lenience < 1 and block_verification:
    raise ValueError(
        "`lenience` must be 1 if `block_verification` is on: it is defined for"
        f" single tokens. Got {lenience}."
    )


def num_ids(
    target: Model, draft: AnyDraft | None, vocab_size: int | None
) -> int:
  """Returns the number of ids that may be emitted; checks that models match.

  Raises:
    ValueError: vocabularies differ, sizes differ by more than padding, one
      model is decoder-only and the other is not, or `vocab_size` is out of
      range.
  """
  if target.config.shortlist:
    raise ValueError(
        "`target` must have logits for all tokens: only a draft may be"
        f" shortened. Got {target.name!r}."
    )
  limit = min(target.config.vocab_size, _draft_size(target, draft))
  if vocab_size is None:
    known = target.vocabulary.num_ids if target.vocabulary else limit
    return min(known, limit)
  if not 2 <= vocab_size <= limit:
    raise ValueError(
        f"`vocab_size` must be between 2 and {limit}. Got {vocab_size}."
    )
  return vocab_size


def _draft_size(target: Model, draft: AnyDraft | None) -> int:
  """Returns the number of ids that the draft may propose."""
  size = target.config.vocab_size
  if draft is None or isinstance(draft, PromptLookup):
    return size
  if isinstance(draft, NgramTable):
    draft_size = draft.vocab_size
  elif isinstance(draft, Model):
    _check_model_pair(target, draft)
    draft_size = draft.config.vocab_size
  else:
    raise ValueError(
        "`draft` must be a Model, an NgramTable, a PromptLookup or None."
        f" Got {type(draft).__name__}."
    )
  check_vocab_size("draft", draft_size, size)
  return draft_size


def check_vocab_size(name: str, size: int, target_size: int) -> None:
  """Raises ValueError unless a draft may have the target's vocabulary.

  Args:
    name: of the argument, for errors.
    size: number of the draft's ids.
    target_size: number of the target's.
  """
  if abs(size - target_size) > MAX_PADDING:
    raise ValueError(
        f"`{name}` must have the target's vocabulary, {target_size} ids give or"
        f" take {MAX_PADDING} of padding. Got {size}."
    )


def _check_model_pair(target: Model, draft: Model) -> None:
  if target.config.decoder_only != draft.config.decoder_only:
    raise ValueError(
        "`draft` must be decoder-only iff the target is. Got target"
        f" {target.name!r} and draft {draft.name!r}."
    )
  both = (target.vocabulary, draft.vocabulary)
  if None not in both and both[0] != both[1]:
    raise ValueError(
        f"`draft` must have the target's vocabulary. The pieces of"
        f" {target.name!r} and {draft.name!r} differ."
    )


def token_array(
    name: str, rows: Sequence[Sequence[int]], limit: int
) -> Int[np.ndarray, "batch length"]:
  """Pads token ids to a rectangle.

  Args:
    name: of the argument, for errors.
    rows: token ids, ragged or [batch, length].
    limit: ids must be below this.

  Raises:
    ValueError: an id is no integer, negative or too large.
  """
  rows = [np.asarray(row) for row in rows]
  for number, row in enumerate(rows):
    if row.ndim != 1 or (row.size and row.dtype.kind not in "iu"):
      raise ValueError(
          f"`{name}[{number}]` must be a sequence of integers."
          f" Got {row.dtype} with shape {row.shape}."
      )
    if row.size and not 0 <= row.min() <= row.max() < limit:
      raise ValueError(
          f"`{name}[{number}]` must hold ids in [0, {limit})."
          f" Got {row.min()} to {row.max()}."
      )
  array = np.full((len(rows), max(map(len, rows))), PAD_ID, np.int32)
  for number, row in enumerate(rows):
    array[number, : len(row)] = row
  return array


def padded_length(length: int, multiple: int = INPUT_MULTIPLE) -> int:
  """Returns the next multiple, at least one: few lengths are compiled so."""
  return max(multiple, length + -length % multiple)


def pad_to(
    ids: Int[np.ndarray, "batch length"], multiple: int = INPUT_MULTIPLE
) -> Int[np.ndarray, "batch length"]:
  """Pads token ids to `padded_length`."""
  length = ids.shape[1]
  return np.pad(ids, ((0, 0), (0, padded_length(length, multiple) - length)))


def row_keys(
    seed: int, example_ids: Sequence[int], num_decodes: int
) -> Key[Array, " rows"]:
  """Returns one key per decode, from seed, example and decode alone."""
  seed_key = jax.random.key(seed)

  def keys_of(example_id):
    example_key = jax.random.fold_in(seed_key, example_id)
    fold = lambda decode: jax.random.fold_in(example_key, decode)
    return jax.vmap(fold)(np.arange(num_decodes))

  ids = np.asarray(example_ids, np.uint32)
  return jax.vmap(keys_of)(ids).reshape(-1)


def check_example_ids(example_ids: Sequence[int], batch: int) -> None:
  """Raises ValueError unless there is one id per input that a key can hold."""
  if len(example_ids) != batch:
    raise ValueError(
        f"`example_ids` must have one entry per input, {batch}."
        f" Got {len(example_ids)}."
    )
  if min(example_ids) < 0 or max(example_ids) >= 2**32:
    raise ValueError(
        "`example_ids` must be in [0, 2**32)."
        f" Got {min(example_ids)} to {max(example_ids)}."
    )


def row_statistics(counts: Counts) -> list[DecodeStatistics]:
  """Splits the loop's counts into one `DecodeStatistics` per row."""
  return [
      DecodeStatistics.from_row(*(field[row] for field in counts))
      for row in range(len(counts.emitted))
  ]

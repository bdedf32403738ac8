"""Text to token ids and back, by a SentencePiece model."""

import functools
import os
import pathlib
from collections.abc import Iterable

import sentencepiece

__all__ = ["SHIPPED_PATH", "Vocabulary"]

# The 8,000 pieces trained on the shipped corpora.
SHIPPED_PATH = pathlib.Path(__file__).parent / "data" / "spiece.model"

# T5's own model has this many pieces, and 100 sentinels follow them.
_T5_PIECES, _T5_SENTINELS = 32_000, 100


class Vocabulary:
  """A SentencePiece model with T5's conventions: PAD 0, EOS 1, no BOS.

  A model's embedding table may have more rows than the vocabulary has pieces
  (T5 pads its own from 32,000 to 32,128); `decode` skips such ids.

  Attributes:
    size: Number of pieces.
    num_ids: Number of ids that mean something: pieces and T5's sentinels.
    pad_id: Id of padding, 0 in T5; also what the decoder starts from.
    eos_id: Id of the end of the text, 1 in T5.
  """

  def __init__(self, path: str | os.PathLike[str] = SHIPPED_PATH):
    """Loads a model file.

    Args:
      path: A SentencePiece model, e.g. T5's `spiece.model`.

    Raises:
      FileNotFoundError: There is no file at `path`.
      ValueError: The file is no SentencePiece model, or it does not define
        padding and the end of the text.
    """
    path = pathlib.Path(path)
    if not path.is_file():
      raise FileNotFoundError(
          f"`path` must be a SentencePiece model file. Got {str(path)!r}, "
          "where there is no file."
      )
    try:
      self._pieces = sentencepiece.SentencePieceProcessor(model_file=str(path))
    except (RuntimeError, OSError) as error:
      raise ValueError(
          f"`path` must be a SentencePiece model file. Got {str(path)!r}."
      ) from error
    self.size: int = self._pieces.get_piece_size()
    self.num_ids: int = self.size
    if self.size == _T5_PIECES:
      self.num_ids += _T5_SENTINELS
    self.pad_id: int = self._pieces.pad_id()
    self.eos_id: int = self._pieces.eos_id()
    if self.pad_id < 0 or self.eos_id < 0:
      raise ValueError(
          "The model at `path` must define PAD and EOS. "
          f"Got PAD {self.pad_id}, EOS {self.eos_id}."
      )

  def __eq__(self, other: object) -> bool:
    """Whether both have the same pieces under the same ids."""
    if not isinstance(other, Vocabulary):
      return NotImplemented
    return self._listing == other._listing

  def __hash__(self) -> int:
    """Hash of the pieces."""
    return hash(self._listing)

  @functools.cached_property
  def _listing(self) -> tuple[str, ...]:
    return tuple(self._pieces.id_to_piece(list(range(self.size))))

  def encode(self, text: str) -> list[int]:
    """Token ids of a text, without EOS."""
    return self._pieces.encode(text)

  def decode(self, ids: Iterable[int]) -> str:
    """Text of token ids up to the first EOS.

    Args:
      ids: Token ids, a list or a one-axis array. Padding and ids beyond the
        last piece are skipped.

    Returns:
      The text, as SentencePiece normalises it.

    Raises:
      ValueError: An id is negative.
    """
    kept = []
    for token in map(int, ids):
      if token < 0:
        raise ValueError(f"`ids` must not be negative. Got {token}.")
      if token == self.eos_id:
        break
      if token != self.pad_id and token < self.size:
        kept.append(token)
    return self._pieces.decode(kept)

  def piece(self, token: int) -> str:
    """Returns a token as it stands in the middle of a text.

    Args:
      token: Its id.

    Returns:
      The piece, its spaces as spaces unless there is nothing else; for an id
      without text a name in angle brackets, such as `</s>` for EOS.

    Raises:
      ValueError: The id is negative.
    """
    if token < 0:
      raise ValueError(f"`token` must not be negative. Got {token}.")
    if token >= self.size:
      return f"<{token}>"
    piece = self._pieces.id_to_piece(token)
    return piece.replace("\u2581", " ") if piece.strip("\u2581") else piece

"""BLEU or ROUGE of a model in training, on held-out examples."""

import dataclasses
from collections.abc import Sequence

from spec_t5x import metrics
from spec_t5x.batching import Example
from spec_t5x.decode_batches import make_batches
from spec_t5x.decoder import Decoder
from spec_t5x.model import Model
from spec_t5x.train import Trainer
from spec_t5x.types import EOS_ID
from spec_t5x.vocabulary import Vocabulary

METRICS = ("bleu", "rouge")


@dataclasses.dataclass(frozen=True)
class Quality:
  """Decodes held-out examples by argmax and scores the texts.

  Attributes:
    vocabulary: of the examples.
    examples: (source, target) pairs, without EOS; of an encoder-decoder.
    metric: 'bleu' (translations) or 'rouge' (summaries).
    max_decode_steps: most tokens of a text.
    batch_size: inputs decoded together.
  """

  vocabulary: Vocabulary
  examples: Sequence[Example]
  metric: str = "bleu"
  max_decode_steps: int = 96
  batch_size: int = 32

  def __post_init__(self):
    """Checks the metric."""
    if self.metric not in METRICS:
      raise ValueError(
          f"`metric` must be one of {METRICS}. Got {self.metric!r}."
      )

  def __call__(self, trainer: Trainer) -> dict[str, float]:
    """Returns the scores, 0 to 100, and the percentage of looping texts."""
    model = Model(
        "in training", trainer.config, trainer.state.params, self.vocabulary
    )
    decoder = Decoder(
        model, max_decode_steps=self.max_decode_steps, mesh=trainer.mesh
    )
    sources = [[*source, EOS_ID] for source, _ in self.examples]
    predictions = {}
    for batch in make_batches(sources, self.batch_size):
      texts = decoder(batch.ids).texts
      predictions |= dict(zip(batch.lines, texts, strict=False))
    texts = [predictions[line] for line in range(len(sources))]
    references = [self.vocabulary.decode(ids) for _, ids in self.examples]
    if self.metric == "rouge":
      scores = metrics.rouge(texts, references)
    else:
      scores = {"bleu": metrics.bleu(texts, references)}
    return scores | {"looping": 100 * metrics.looping_fraction(texts)}

"""A SeqIO task of a few byte strings; its name is `toy_t5x`."""

import seqio
import tensorflow as tf

TEXTS = (
    "a cat",
    "the quick brown fox",
    "zebra",
    "12 + 30",
    "Ein Haus",
)


def _dataset(split, shuffle_files, seed=None):
  del split, shuffle_files, seed
  return tf.data.Dataset.from_tensor_slices(
      {"inputs": list(TEXTS), "targets": [text[::-1] for text in TEXTS]}
  )


seqio.TaskRegistry.add(
    "toy_t5x",
    source=seqio.FunctionDataSource(_dataset, splits=["test"]),
    preprocessors=[
        seqio.preprocessors.tokenize,
        seqio.preprocessors.append_eos,
    ],
    output_features={
        name: seqio.Feature(seqio.ByteVocabulary())
        for name in ("inputs", "targets")
    },
)

"""The papers' data sets, written in small.

Nothing can be downloaded in a test: one example in each split, under the names
and with the columns that TensorFlow Datasets gives them.
"""

# Texts by data set and column; other columns are left empty.
TEXTS = {
    "wmt_t2t_translate/de-en": {"en": "Click Save.", "de": "Klicken Sie."},
    "cnn_dailymail": {
        "article": "It rains.\nA lot.",
        "highlights": "Rain .\nIt",
    },
    "xsum": {"document": "It snows in May.", "summary": "Snow."},
    "lm1b": {"text": "It is late ."},
}


def write(data_dir):
  """Writes all of them into a directory of TensorFlow Datasets."""
  import tensorflow as tf
  import tensorflow_datasets as tfds

  from spec_t5x import corpora

  for name, texts in TEXTS.items():
    builder = tfds.builder(name)
    columns = builder.info.features
    example = {column: texts.get(column, "") for column in columns}
    dataset = tf.data.Dataset.from_tensors(example)
    splits = ("train", "test") if name == "lm1b" else corpora.SPLITS
    tfds.dataset_builders.store_as_tfds_dataset(
        name=builder.name,
        config=builder.builder_config and builder.builder_config.name,
        version=str(builder.version),
        features=columns,
        split_datasets=dict.fromkeys(splits, dataset),
        data_dir=data_dir,
    )

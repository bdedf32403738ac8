"""Converts T5 weights between Hugging Face and T5X checkpoints.

  python scripts/convert.py --source=google/flan-t5-small \
    --destination=/models/flan-t5-small --format=t5x

The source is a directory of any format, or a name on the Hugging Face hub.
Tensors are streamed, except to Orbax, which takes a model as a whole. In the
formats t5x and orbax the destination is T5X's model directory, in which
`checkpoint_<step>` is made.
"""

from absl import app, flags

from spec_t5x import checkpoints

FLAGS = flags.FLAGS

flags.DEFINE_string("source", None, "Directory or hub name.", required=True)
flags.DEFINE_string("destination", None, "Directory to write.", required=True)
flags.DEFINE_enum(
    "format", None, ["hugging_face", "t5x", "orbax"], "Format.", required=True
)
flags.DEFINE_enum("dtype", "bfloat16", ["bfloat16", "float32"], "Dtype.")
flags.DEFINE_integer("step", 0, "Training step; t5x and orbax.", 0)
flags.DEFINE_string(
    "vocabulary",
    None,
    "SentencePiece file to copy, else the source's; hugging_face.",
)


def main(argv):
  """Converts as the flags say and prints the directory written."""
  if len(argv) > 1:
    raise app.UsageError(f"Unknown arguments {argv[1:]}.")
  source = checkpoints.open_checkpoint(checkpoints.resolve(FLAGS.source))
  if FLAGS.format == "hugging_face":
    path = checkpoints.save_hugging_face(
        FLAGS.destination,
        source.config,
        source,
        FLAGS.dtype,
        vocabulary=FLAGS.vocabulary or source.vocabulary,
    )
  else:
    path = checkpoints.save_t5x(
        FLAGS.destination,
        source,
        FLAGS.step,
        "legacy" if FLAGS.format == "t5x" else "orbax",
        FLAGS.dtype,
    )
  print(path)


if __name__ == "__main__":
  app.run(main)

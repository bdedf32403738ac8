"""T5X's own `infer.py`, `main.py` and `InteractiveModel` with the plug-in."""

import json
import os
import pathlib
import shlex
import subprocess
import sys

import jax
import numpy as np
import pytest

pytest.importorskip("t5x")

import seqio
import t5x
import t5x_task
import t5x_tiny as tiny
import tensorflow as tf
import two_processes
from t5x import interactive_model

from spec_t5x import t5x_plugin
from spec_t5x.t5x_options import DecodeOptions

ROOT = pathlib.Path(__file__).parents[1]
README = ROOT / "README.md"
T5X = pathlib.Path(list(t5x.__path__)[0])
COMMANDS = {
    "infer.py": [str(T5X / "infer.py")],
    "-m t5x.infer": ["-m", "t5x.infer"],
    "main.py": [str(T5X / "main.py"), "--run_mode=infer"],
}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
  """Paths of a legacy target and of an Orbax draft."""
  directory = tmp_path_factory.mktemp("checkpoints")
  params = tiny.params_of(tiny.stock())
  return (
      tiny.save(directory / "target", params, orbax=False),
      tiny.save(directory / "draft", tiny.perturbed(params), orbax=True),
  )


def greedy_texts():
  """What T5X's own model decodes from the task by argmax."""
  lengths = {"inputs": 24, "targets": 12}
  dataset = seqio.get_mixture_or_task("toy_t5x").get_dataset(
      lengths, "test", shuffle=False
  )
  features = seqio.EncDecFeatureConverter(pack=False)(dataset, lengths)
  model = tiny.stock()
  tokens = jax.jit(model.predict_batch)(
      tiny.params_of(model), next(features.batch(5).as_numpy_iterator())
  )
  texts = tiny.VOCABULARY.decode_tf(tf.constant(tokens)).numpy()
  return [text.decode() for text in texts]


def flags(files, directory, bindings):
  """Command line of T5X that writes to a directory."""
  bindings = {"INFER_OUTPUT_DIR": str(directory)} | bindings
  return [
      *(f"--gin.{name}={value!r}" for name, value in bindings.items()),
      *(f"--gin_file={file}" for file in files),
  ]


def lines_of(directory):
  """What T5X wrote for each example."""
  [output] = directory.glob("*.jsonl-00000-of-00001")
  return [json.loads(line) for line in output.read_text("utf-8").splitlines()]


def run(command, files, tmp_path, **bindings):
  """Runs T5X as a user does; returns its JSON lines."""
  path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), *sys.path])
  subprocess.run(
      [sys.executable, *command, *flags(files, tmp_path, bindings)],
      cwd=ROOT,
      env=os.environ | {"PYTHONPATH": path},
      check=True,
      capture_output=True,
  )
  return lines_of(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_infer_writes_the_targets_tokens_and_statistics(
    command, checkpoints, tmp_path
):
  target, draft = checkpoints
  found = run(
      command,
      ["tests/t5x_tiny.gin"],
      tmp_path,
      CHECKPOINT_PATH=target,
      DRAFT_CHECKPOINT_PATH=draft,
  )
  assert len(found) == len(t5x_task.TEXTS)
  for line, text in zip(found, greedy_texts(), strict=True):
    assert line["prediction"] == text
    aux = line["aux"]
    assert sum(aux["accept_counts"]) == aux["iterations"]
    np.testing.assert_allclose(
        aux["alpha"], aux["accepted"] / aux["tested"], rtol=1e-6
    )
  assert sum(line["aux"]["accepted"] for line in found) > 0


@pytest.mark.slow
def test_two_processes_write_what_one_does(checkpoints, tmp_path):
  target, draft = checkpoints
  bindings = {
      "CHECKPOINT_PATH": target,
      "DRAFT_CHECKPOINT_PATH": draft,
      "BATCH_SIZE": 8,
      # On CPU, T5X takes its mesh from the last of these numbers.
      "NUM_PARTITIONS": None,
      "MODEL_PARALLEL_SUBMESH": (1, 1, 1, 2),
  }
  command = flags(["tests/t5x_tiny.gin"], tmp_path, bindings)
  two_processes.run_job(["scripts/infer_t5x.py", *command], [[], []])
  found = lines_of(tmp_path)
  assert [line["prediction"] for line in found] == greedy_texts()
  assert sum(line["aux"]["accepted"] for line in found) > 0


@pytest.mark.slow
def test_every_decode_is_written_with_its_statistics(checkpoints, tmp_path):
  found = run(
      COMMANDS["infer.py"],
      ["tests/t5x_tiny.gin"],
      tmp_path,
      CHECKPOINT_PATH=checkpoints[0],
      DRAFT_CHECKPOINT_PATH=checkpoints[1],
      NUM_DECODES=3,
      RETURN_ALL_DECODES=True,
      TEMPERATURE=1.0,
      GAMMA=2,
  )
  assert len(found) == len(t5x_task.TEXTS)
  for line in found:
    aux = line["aux"]
    assert len(line["prediction"]) == 3
    assert np.shape(aux["accept_counts"]) == (3, 3)
    assert np.sum(aux["accept_counts"], axis=1).tolist() == aux["iterations"]
    # Three draws are three texts, sorted by rising score.
    assert aux["scores"] == sorted(aux["scores"])
    assert len(set(aux["scores"])) == 3


def readme_command():
  """The command of README's section for T5X users, of one line."""
  section = README.read_text("utf-8").partition("## For T5X users")[2]
  block = section.partition("```bash")[2].partition("```")[0]
  return block.replace("\\\n", " ")


@pytest.mark.slow
def test_command_of_the_readme(checkpoints, tmp_path):
  """As it is written, but for a pair and a task that are here."""
  command = readme_command()
  for placeholder, value in (
      ("configs/t5x/pairs/t5_1_1_xxl_small.gin", "tests/t5x_tiny.gin"),
      ("path/to/target/checkpoint_1000000", checkpoints[0]),
      ("path/to/draft/checkpoint_1000000", checkpoints[1]),
      ("my_tasks", "t5x_task"),
      ("my_task", "toy_t5x"),
      ("512", "24"),
      ("128", "12"),
      ('\\"out\\"', f'\\"{tmp_path}\\"'),
      ("python ", f"{shlex.quote(sys.executable)} "),
  ):
    assert placeholder in command, placeholder
    command = command.replace(placeholder, value)
  parent = str(T5X.parent)
  paths = [*map(os.path.abspath, filter(None, sys.path)), str(ROOT / "tests")]
  subprocess.run(
      ["bash", "-ec", command],
      cwd=ROOT,
      env=os.environ
      | {"T5X": parent, "AIRIO": os.pathsep.join(paths), "JESTIMATOR": parent},
      check=True,
      capture_output=True,
  )
  assert [line["prediction"] for line in lines_of(tmp_path)] == greedy_texts()


@pytest.mark.slow
def test_one_more_gin_file_for_the_stock_class(checkpoints, tmp_path):
  files = ["tests/t5x_stock.gin", "configs/t5x/decode_fn.gin"]
  found = run(
      COMMANDS["infer.py"], files, tmp_path, CHECKPOINT_PATH=checkpoints[0]
  )
  assert [line["prediction"] for line in found] == greedy_texts()


@pytest.mark.slow
def test_interactive_model(checkpoints, tmp_path):
  model = t5x_plugin.SpeculativeModel(
      tiny.encoder_decoder(),
      tiny.VOCABULARY,
      tiny.VOCABULARY,
      draft_module=tiny.encoder_decoder(),
      options=DecodeOptions(temperature=0.0, topk=0),
  )
  lengths = {"inputs": 9, "targets": 10}

  def interactive(model, name):
    return interactive_model.InteractiveModel(
        batch_size=4,
        task_feature_lengths=lengths,
        output_dir=str(tmp_path / name),
        partitioner=tiny.partitioner(),
        model=model,
        dtype="float32",
        restore_mode="specific",
        checkpoint_path=None,
        input_shapes=tiny.SHAPES,
    )

  session = interactive(model, "pair")
  t5x_plugin.restore_pair(session, *checkpoints, dtype="float32")
  found, aux = session.predict_with_aux(["a cat", "zebra"])
  plain = interactive(tiny.stock(), "stock")
  t5x_plugin.restore_pair(plain, checkpoints[0], None, dtype="float32")
  expected, _ = plain.predict_with_aux(["a cat", "zebra"])
  assert [text for _, text in found] == [text for _, text in expected]
  assert sum(aux["accepted"]) > 0
  # The scores are the target's.
  examples = [{"input": "a cat", "target": "tac"}]
  [(_, score)], [(_, expected)] = session.score(examples), plain.score(examples)
  assert score == expected

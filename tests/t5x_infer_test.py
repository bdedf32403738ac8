"""T5X's own `infer.py`, `main.py` and `InteractiveModel` with the plug-in."""

import json
import os
import pathlib
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
from t5x import interactive_model

from spec_t5x import t5x_plugin
from spec_t5x.t5x_options import DecodeOptions

ROOT = pathlib.Path(__file__).parents[1]
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


def run(command, files, tmp_path, **bindings):
  """Runs T5X as a user does; returns its JSON lines."""
  bindings = {"INFER_OUTPUT_DIR": str(tmp_path)} | bindings
  flags = [f"--gin.{name}={value!r}" for name, value in bindings.items()]
  flags += [f"--gin_file={file}" for file in files]
  path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), *sys.path])
  subprocess.run(
      [sys.executable, *command, *flags],
      cwd=ROOT,
      env=os.environ | {"PYTHONPATH": path},
      check=True,
      capture_output=True,
  )
  [output] = tmp_path.glob("*.jsonl-00000-of-00001")
  return [json.loads(line) for line in output.read_text("utf-8").splitlines()]


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

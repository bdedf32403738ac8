"""Tests of the training job: its files, its starts, its configurations."""

import dataclasses
import glob
import io
import itertools
import json
import math
import pathlib

import gin
import jax
import numpy as np
import pytest
import toy_training
from rich.console import Console
from toy_training import CONFIG, make_data

from spec_t5x import gin_flags, train
from spec_t5x.checkpoints import layout
from spec_t5x.config import T5Config
from spec_t5x.model import load
from spec_t5x.optimizers import Schedule
from spec_t5x.train_data import Examples
from spec_t5x.train_job import TrainJob
from spec_t5x.train_quality import Quality
from spec_t5x.vocabulary import Vocabulary

pytestmark = pytest.mark.usefixtures("quick_compilation")

ROOT = pathlib.Path(toy_training.__file__).parents[1]
PLAIN = dataclasses.replace(CONFIG, dropout_rate=0.0)


def make_job(directory, num_steps=2, **changes):
  settings = dict(
      directory=str(directory),
      data=make_data(),
      schedule=Schedule(0.03, 0, num_steps, num_steps),
      eval_every=1,
      save_every=1,
      export_dtype="float32",
  )
  return TrainJob(**{**settings, **changes})


def run(job):
  console = Console(file=io.StringIO())
  return job.run(console), console.file.getvalue()


def steps_of(directory):
  rows = (directory / "log.jsonl").read_text().splitlines()
  return [json.loads(row)["step"] for row in rows]


def starts_of(directory):
  lines = (directory / "provenance.jsonl").read_text().splitlines()
  return list(map(json.loads, lines))


def assert_same(first, second):
  jax.tree.map(np.testing.assert_array_equal, first, second)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
  """(run directory, model directory, output) of a job of two steps."""
  directory = tmp_path_factory.mktemp("job")
  return directory, *run(make_job(directory, config=PLAIN, metric="bleu"))


def test_exports_what_was_trained(trained, tmp_path):
  trainer = toy_training.make_trainer(config=PLAIN)
  train.fit(trainer, make_data(), 2, tmp_path, eval_every=1, save_every=1)
  model = load(trained[1])
  assert model.config == PLAIN
  assert_same(model.params, trainer.state.params)
  assert model.vocabulary == Vocabulary()
  assert steps_of(trained[1]) == [1, 2]
  assert trained[1] == trained[0] / "model"


def test_every_start_tells_where_it_began_and_from_what(trained, tmp_path):
  job = make_job(tmp_path, config=PLAIN, init_from=str(trained[1]))
  run(dataclasses.replace(job, schedule=Schedule(0.03, 0, 1, 1)))
  path, _ = run(job)
  first, second = starts_of(tmp_path)
  assert starts_of(path) == [first, second]
  assert (first["start_step"], second["start_step"]) == (0, 1)
  settings = second["settings"]
  assert settings["schedule"]["num_steps"] == 2
  assert settings["config"]["emb_dim"] == PLAIN.emb_dim
  assert len(settings["data"]["train"]) == 16
  assert "directory" not in settings
  assert second["files_sha256"].keys() == {"vocabulary", "init_from"}
  assert {"commit", "dirty", "versions", "device", "command"} <= second.keys()


def test_curve_has_the_metric(trained):
  rows = (trained[0] / "log.jsonl").read_text().splitlines()
  last = json.loads(rows[-1])
  assert 0 <= last["bleu"] <= 100
  assert 0 <= last["looping"] <= 100
  assert "bleu" not in json.loads(rows[0])
  assert "16 texts, 2 batches an epoch" in trained[2]
  assert "step 2, loss" in trained[2]


def test_finished_jobs_export_again_and_train_no_more(trained):
  before = load(trained[1]).params
  run(make_job(trained[0], config=PLAIN))
  assert steps_of(trained[0]) == [1, 2]
  assert len(starts_of(trained[0])) == 1
  assert_same(load(trained[1]).params, before)


def test_starts_from_weights_and_grows_them(trained, tmp_path):
  deep = dataclasses.replace(PLAIN, num_decoder_layers=2)
  start = load(trained[1])
  for config, depth in ((None, 1), (deep, 2)):
    job = make_job(
        tmp_path / str(depth),
        config=config,
        init_from=str(trained[1]),
        dropout_rate=0.1,
    )
    trainer = job._trainer()
    assert trainer.config.num_decoder_layers == depth
    assert trainer.config.dropout_rate == 0.1
    for i in range(depth):
      assert_same(
          trainer.state.params["decoder"][f"layers_{i}"],
          start.params["decoder"]["layers_0"],
      )


def test_compiled_programs_are_kept_and_the_setting_restored(trained):
  assert any((trained[0] / "compiled").iterdir())
  cache = jax.config.jax_compilation_cache_dir
  assert cache != str(trained[0] / "compiled")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "`config` or `init_from` must be given. Got None for both."),
        (
            {"config": PLAIN, "metric": "chrf"},
            r"`metric` must be one of \('bleu', 'rouge'\). Got 'chrf'.",
        ),
        (
            {"config": T5Config(24, 8, 2, 4, 16, 0, 1), "metric": "bleu"},
            "`metric` must be None for a decoder-only model. Got 'bleu'.",
        ),
        (
            {"config": PLAIN, "optimizer": "sgd"},
            "`optimizer` must be one of",
        ),
        (
            {"config": PLAIN, "mesh": (3, 5)},
            "`data` times `model` must be the number of devices",
        ),
    ],
)
def test_errors(tmp_path, changes, message):
  with pytest.raises(ValueError, match=message):
    run(make_job(tmp_path, **changes))


def test_quality_tells_a_trained_model():
  data = make_data()
  trainer = toy_training.make_trainer(config=PLAIN)
  # Of the texts trained on: sixteen say nothing sure about others.
  quality = Quality(Vocabulary(), data.train, "bleu", 8, batch_size=16)
  before = quality(trainer)
  for batch in itertools.islice(data.train_batches(0), 200):
    trainer.step(batch)
  after = quality(trainer)
  assert before["bleu"] < 20
  assert after["bleu"] > before["bleu"] + 20


CONFIGS = sorted(glob.glob(str(ROOT / "configs/experiments/train_*.gin")))


def recipe(path):
  """The job of a gin file, without its data, large or not there yet."""
  needs_vocabulary = any(name in path for name in ("xxl", "lm1b"))
  with pytest.MonkeyPatch.context() as patch, gin.unlock_config():
    patch.chdir(ROOT)
    gin.clear_config()
    try:
      gin_flags.parse(
          [path],
          [
              'DIRECTORY="runs/x"',
              *(['VOCABULARY="x"'] if needs_vocabulary else []),
              "train_job.TrainJob.data=None",
          ],
      )
      return gin.get_configurable(TrainJob)()
    finally:
      gin.clear_config()


@pytest.mark.parametrize(
    "path", CONFIGS, ids=[pathlib.Path(path).stem for path in CONFIGS]
)
def test_recipes_configure_a_job(path):
  job = recipe(path)
  assert job.directory == "runs/x"
  assert job.schedule.num_steps > job.schedule.warmup_steps
  assert (job.config is None) == ("xxl" in path)


@pytest.mark.parametrize(
    ("role", "millions", "sizes"),
    [
        ("target", 97, (768, 3072, 12, 12)),
        ("draft", 6, (256, 1024, 2, 4)),
    ],
)
def test_the_lm1b_pair_has_the_sizes_of_the_paper(role, millions, sizes):
  config = recipe(f"configs/experiments/train_lm1b_{role}.gin").config
  assert config.decoder_only
  assert config.mlp_activations == ("gelu",)
  assert sizes == (
      config.emb_dim,
      config.mlp_dim,
      config.num_decoder_layers,
      config.num_heads,
  )
  shapes = layout.parameter_shapes(config).values()
  total = sum(math.prod(shape) for shape in shapes)
  assert round(total / 1e6) == millions


def test_decoder_only_models_are_trained_on_targets_alone(tmp_path):
  config = dataclasses.replace(
      PLAIN, num_encoder_layers=0, mlp_activations=("gelu",)
  )
  texts = [((), target) for _, target in make_data().train]
  data = Examples(texts, texts, 96, buckets=((1, 6),))
  job = make_job(tmp_path, 8, config=config, data=data, eval_every=4)
  path, _ = run(job)
  rows = [json.loads(x) for x in (path / "log.jsonl").read_text().splitlines()]
  assert rows[-1]["held_out_loss"] < rows[0]["held_out_loss"]
  assert load(path).config == config

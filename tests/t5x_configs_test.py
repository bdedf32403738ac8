"""Tests of the gin files for T5X; skipped where it is not."""

import functools
import pathlib
import re

import gin
import pytest

import __main__

pytest.importorskip("t5x")

import t5x
from t5x import infer, utils
from t5x.examples.decoder_only import network as decoder_only
from t5x.examples.t5 import network

import spec_t5x.model
from spec_t5x import checkpoints, t5x_decoding, t5x_plugin
from spec_t5x.vocabulary import SHIPPED_PATH

ROOT = pathlib.Path(__file__).parents[1]
T5X = pathlib.Path(list(t5x.__path__)[0])
CONFIGS = ROOT / "configs" / "t5x"
PAIRS = sorted(path.stem for path in (CONFIGS / "pairs").glob("*.gin"))
MODELS = sorted(
    str(path.relative_to(CONFIGS / "models"))
    for path in (CONFIGS / "models").rglob("*.gin")
)
EXPERIMENTS = sorted(
    path.stem
    for path in (CONFIGS / "experiments").glob("*.gin")
    if path.stem != "papers"
)
SIZES = (
    "vocab_size emb_dim num_heads num_encoder_layers num_decoder_layers"
    " head_dim mlp_dim mlp_activations logits_via_embedding dtype"
).split()
CAUSAL_SIZES = ["num_layers", *(x for x in SIZES if "coder" not in x)]


@pytest.fixture(autouse=True)
def clean(monkeypatch):
  """Starts from the root, as users do, with nothing bound."""
  monkeypatch.chdir(ROOT)
  gin.clear_config()
  gin.add_config_file_search_path(str(T5X.parent))
  # As if T5X's script were run.
  monkeypatch.setattr(__main__, "infer", infer.infer, raising=False)
  yield
  gin.clear_config()


@pytest.mark.parametrize("model", MODELS)
def test_sizes_are_those_of_t5x(model, monkeypatch):
  role, name = pathlib.Path(model).parts
  family, size = re.fullmatch(r"(.*)_(\w+)\.gin", name).groups()
  size = {"3b": "3B", "11b": "11B"}.get(size, size)
  theirs, config_class, fields = f"t5/{family}", network.T5Config, SIZES
  if family == "decoder_only":
    theirs, config_class = "decoder_only/models", decoder_only.TransformerConfig
    fields = CAUSAL_SIZES
  # Gin finds no files of packages without `__init__.py` from elsewhere.
  monkeypatch.chdir(T5X.parent)
  gin.parse_config_files_and_bindings(
      [f"t5x/examples/{theirs}/{size}.gin"], ["DROPOUT_RATE = 0.0"]
  )
  expected = gin.get_configurable(config_class)()
  gin.clear_config()
  monkeypatch.chdir(ROOT)
  gin.parse_config_file(f"configs/t5x/models/{model}")
  with gin.config_scope(role):
    config = gin.get_configurable(config_class)()
  for field in fields:
    assert getattr(config, field) == getattr(expected, field), field


def assert_draft_is_smaller(model):
  draft, target = (
      config.emb_dim * config.mlp_dim * config.num_decoder_layers
      for config in (model._draft_module.config, model.module.config)
  )
  assert draft < target


@pytest.mark.parametrize("pair", PAIRS)
def test_pairs_are_complete(pair):
  bindings = [
      "VOCABULARY_FILE = 'never read'",
      "MIXTURE_OR_TASK_NAME = 'task'",
      "GAMMA = 7",
  ]
  gin.parse_config_files_and_bindings(
      [f"configs/t5x/pairs/{pair}.gin"], bindings, finalize_config=False
  )
  model = gin.get_configurable(t5x_plugin.SpeculativeModel)()
  assert model.options.gamma == 7
  assert_draft_is_smaller(model)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_experiments_are_complete(experiment):
  path = CONFIGS / "experiments" / f"{experiment}.gin"
  text = path.read_text("utf-8")
  # What the header calls required, and a vocabulary that is here.
  [required] = re.findall(r"^# Required: (.*)\.$", text, re.MULTILINE)
  bindings = [f"{name} = 'given'" for name in required.split(", ")]
  bindings += [
      f"VOCABULARY_FILE = {str(SHIPPED_PATH)!r}",
      "tasks.task.name_prefix = 'configs_'",
  ]
  gin.parse_config_files_and_bindings([str(path.relative_to(ROOT))], bindings)
  model = gin.get_configurable(t5x_plugin.SpeculativeModel)()
  assert_draft_is_smaller(model)
  dataset = gin.get_configurable(utils.DatasetConfig)()
  assert dataset.mixture_or_task_name == "configs_wmt14_ende"
  assert dataset.batch_size == 1
  utils.verify_matching_vocabs(dataset, model)


def test_the_shipped_pair_has_its_sizes():
  required = ("CHECKPOINT_PATH", "DRAFT_CHECKPOINT_PATH", "INFER_OUTPUT_DIR")
  bindings = [f"{name} = 'given'" for name in required]
  bindings.append("tasks.task.name_prefix = 'pair_'")
  gin.parse_config_files_and_bindings(
      ["configs/t5x/pairs/shipped_ende.gin"], bindings
  )
  model = gin.get_configurable(t5x_plugin.SpeculativeModel)()
  for module, name in (
      (model.module, "target"),
      (model._draft_module, "small"),
  ):
    directory = spec_t5x.model.find(f"shipped:{name}")
    shipped = checkpoints.open_checkpoint(directory).config
    ours = t5x_decoding.model_config(module, name)
    for field in (*SIZES, "decoder_only"):
      assert getattr(ours, field) == getattr(shipped, field), field
  dataset = gin.get_configurable(utils.DatasetConfig)()
  assert dataset.mixture_or_task_name == "pair_ende"
  utils.verify_matching_vocabs(dataset, model)


def test_headers_name_every_macro_of_the_run_files():
  for name in ("infer.gin", "common.gin"):
    text = (CONFIGS / name).read_text("utf-8")
    for macro in re.findall(r"^([A-Z]\w*) = ", text, re.MULTILINE):
      documented = re.search(rf"^#.*\n(.* = .*\n)*{macro} = ", text, re.M)
      assert documented or f"- {macro}:" in text, macro


def test_decoder_only_pair():
  files = [
      "configs/t5x/infer_decoder_only.gin",
      "configs/t5x/models/target/decoder_only_xl.gin",
      "configs/t5x/models/draft/decoder_only_base.gin",
  ]
  bindings = ["VOCABULARY_FILE = 'never read'", "NUM_DECODES = 3"]
  gin.parse_config_files_and_bindings(files, bindings, finalize_config=False)
  model = gin.get_configurable(t5x_plugin.SpeculativeDecoderOnlyModel)()
  assert model.module.config.emb_dim == 2048
  assert model._draft_module.config.emb_dim == 768


def test_beam_search_by_gin():
  files = [
      "configs/t5x/infer.gin",
      "configs/t5x/models/target/t5_1_1_small.gin",
  ]
  bindings = [
      "VOCABULARY_FILE = 'never read'",
      "DECODE_FN = @decoding.beam_search",
  ]
  parse = functools.partial(
      gin.parse_config_files_and_bindings,
      bindings=bindings,
      finalize_config=False,
  )
  parse(files)
  model = gin.get_configurable(t5x_plugin.SpeculativeModel)()
  assert model.decodes_as_t5x
  assert model._decode_fn.__name__ == "beam_search"
  gin.clear_config()
  parse([*files, "configs/t5x/models/draft/t5_1_1_small.gin"])
  with pytest.raises(NotImplementedError, match="`beam_search`"):
    gin.get_configurable(t5x_plugin.SpeculativeModel)()

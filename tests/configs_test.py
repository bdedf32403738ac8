"""Tests of the gin files: all parse, and every macro does something."""

import dataclasses
import pathlib
import re

import gin
import pytest

from spec_t5x import gin_flags
from spec_t5x.decode_job import DecodeJob
from spec_t5x.report import reference

ROOT = pathlib.Path(__file__).parents[1]
# Those of `configs/t5x` need T5X, see `t5x_configs_test`.
CONFIGS = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "configs").rglob("*.gin")
    if path.relative_to(ROOT).parts[1] != "t5x"
)
# Not run by themselves.
INCLUDED = {
    "configs/experiments/tpu_compile_models.gin",
    "configs/experiments/train_common.gin",
}
SPECULATIVE = "configs/decoding/speculative.gin"
MACRO = re.compile(r"^([A-Z][A-Z0-9_]*) = ", re.MULTILINE)


@pytest.fixture(autouse=True)
def clean(monkeypatch):
  """Starts from the root, as users do, with nothing bound."""
  monkeypatch.chdir(ROOT)
  gin.clear_config()
  yield
  gin.clear_config()


def macros(text):
  """Names that a gin file defines."""
  return MACRO.findall(text)


@pytest.mark.parametrize("config", CONFIGS)
def test_parses(config):
  gin.parse_config_file(config)


def header(config):
  """The comment on top of a gin file."""
  top = re.match(r"(#.*\n)+", pathlib.Path(config).read_text("utf-8"))
  assert top, "no comment on top"
  return top[0]


def unused(text):
  """Macros that a configuration defines and nothing in it refers to."""
  return set(macros(text)) - set(re.findall(r"%([A-Z][A-Z0-9_]*)", text))


@pytest.mark.parametrize("config", CONFIGS)
def test_required_macros_are_named_in_the_header(config):
  text = pathlib.Path(config).read_text("utf-8")
  for name in re.findall(r"^(\w+) = %gin.REQUIRED", text, re.MULTILINE):
    assert name in header(config)


@pytest.mark.parametrize("config", CONFIGS)
def test_every_macro_is_used(config):
  gin.parse_config_file(config)
  assert not unused(gin.config_str())


def test_a_macro_that_does_nothing_is_found():
  gin.parse_config_file(SPECULATIVE)
  gin.parse_config("GAMAM = 3")
  assert unused(gin.config_str()) == {"GAMAM"}


@pytest.mark.parametrize("config", CONFIGS)
def test_the_header_names_macros_that_exist(config):
  gin.parse_config_file(config)
  known = set(macros(gin.config_str()))
  text = re.sub(r"\n# ?", " ", header(config))
  lists = re.findall(r"(?:Required|Commonly overridden): ([A-Z0-9_, ]+)", text)
  named = {name for names in lists for name in re.findall(r"\w+", names)}
  bound = set(re.findall(r"--gin\.(\w+)=", text))
  assert (named | bound) <= known


@pytest.mark.parametrize("config", CONFIGS)
def test_the_header_names_files_that_exist(config):
  paths = re.findall(r"(?:configs|scripts)/[\w/]+\.\w+", header(config))
  for path in paths:
    assert pathlib.Path(path).is_file(), path


@pytest.mark.parametrize("config", sorted(set(CONFIGS) - INCLUDED))
def test_the_header_tells_how_to_run_the_file(config):
  assert f"--gin_file={config}" in header(config)


def decode_job(config, **values):
  """The job that the script would run."""
  required = dict(TARGET="t", DRAFT="d", INPUTS="i", OUTPUTS="o")
  if config.endswith("plain.gin"):
    del required["DRAFT"]
  bindings = [
      f"{name}={value!r}" for name, value in (required | values).items()
  ]
  gin_flags.parse([config], bindings)
  return gin.get_configurable(DecodeJob)()


def test_defaults_are_those_of_the_job():
  assert decode_job(SPECULATIVE) == DecodeJob("t", "d", "i", "o")


def test_plain_decoding_has_no_draft():
  job = decode_job("configs/decoding/plain.gin")
  assert job == DecodeJob("t", None, "i", "o")


def test_every_setting_has_a_documented_macro():
  text = pathlib.Path(SPECULATIVE).read_text("utf-8")
  names = {field.name.upper() for field in dataclasses.fields(DecodeJob)}
  assert set(macros(text)) == names
  for name in names:
    assert re.search(rf"^#.*\n{name} = ", text, re.MULTILINE), name


@pytest.mark.parametrize(
    "name", [field.name for field in dataclasses.fields(DecodeJob)]
)
def test_macros_reach_the_job(name):
  # A value that no setting has by default.
  job = decode_job(SPECULATIVE, **{name.upper(): (17, 18)})
  assert getattr(job, name) == (17, 18)


@pytest.mark.parametrize("script", ["scripts/decode.py"])
def test_documented_macros_can_be_bound(script):
  text = pathlib.Path(script).read_text("utf-8")
  [config] = re.findall(r"--gin_file=(\S+)", text)
  gin.parse_config_file(config)
  known = macros(gin.config_str())
  documented = re.findall(r"--gin\.(\w+)=", text)
  assert documented
  assert set(documented) <= set(known)


QUOTED = re.compile(
    r"^# +(EnDe|CNNDM) +(T5-\w+) +temperature (\d) +gamma (\d) +alpha (\S+)"
    r" +speed (\S+)X$",
    re.MULTILINE,
)
NAMES = ("task", "draft", "temperature", "gamma", "alpha", "measured_speed")


@pytest.mark.parametrize(
    ("config", "drafts"),
    [
        ("experiments/t5_3b", {"T5-small", "T5-base", "T5-large"}),
        ("experiments/t5_11b", {"T5-small", "T5-base", "T5-large"}),
        ("experiments/t5_1_1_xxl", {"T5-small", "T5-base", "T5-large"}),
        ("t5x/experiments/t5_1_0_3b", {"T5-small"}),
        ("t5x/experiments/t5_1_0_11b", {"T5-small"}),
        ("t5x/experiments/t5_1_1_xxl_small", {"T5-small"}),
        ("t5x/experiments/t5_1_1_xxl_base", {"T5-base"}),
        ("t5x/experiments/t5_1_1_xxl_large", {"T5-large"}),
    ],
)
def test_headers_quote_the_paper(config, drafts):
  text = pathlib.Path(f"configs/{config}.gin").read_text("utf-8")
  rows = [
      tuple(row[name] for name in NAMES)
      for row in reference.table("leviathan_table2_and_4")
      if row["draft"] in drafts
  ]
  assert len(rows) == 4 * len(drafts)
  assert QUOTED.findall(text) == rows

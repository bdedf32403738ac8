"""Tests of `scripts/convert.py`: round trips through every format."""

import pathlib
import subprocess
import sys

import numpy as np

from spec_t5x import checkpoints
from spec_t5x.checkpoints import layout
from spec_t5x.config import T5Config

ROOT = pathlib.Path(__file__).parents[1]
CONFIG = T5Config(
    vocab_size=40,
    emb_dim=8,
    num_heads=4,
    head_dim=3,
    mlp_dim=16,
    num_encoder_layers=1,
    num_decoder_layers=2,
)


def convert(*arguments):
  """Runs the script; returns the finished process."""
  return subprocess.run(
      [sys.executable, "scripts/convert.py", *arguments],
      cwd=ROOT,
      env={"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)},
      capture_output=True,
      text=True,
      check=False,
  )


def test_round_trip(tmp_path):
  rng = np.random.default_rng(0)
  params = layout.unflatten(
      {
          path: rng.standard_normal(shape).astype(np.float32)
          for path, shape in layout.parameter_shapes(CONFIG).items()
      }
  )
  vocabulary = tmp_path / "pieces"
  vocabulary.write_bytes(b"pieces")
  source = checkpoints.save_hugging_face(
      tmp_path / "source", CONFIG, params, "float32", vocabulary=vocabulary
  )
  for format in ("t5x", "orbax", "hugging_face"):
    destination = tmp_path / format
    done = convert(
        f"--source={source}",
        f"--destination={destination}",
        f"--format={format}",
        "--dtype=float32",
        f"--vocabulary={vocabulary}",
        "--step=5",
    )
    assert done.returncode == 0, done.stderr
    source = pathlib.Path(done.stdout.strip())
  assert source == tmp_path / "hugging_face"
  assert (source / "spiece.model").read_bytes() == b"pieces"
  assert (tmp_path / "t5x" / "checkpoint_5" / "checkpoint").is_file()
  assert (tmp_path / "orbax" / "checkpoint_5" / "state").is_dir()
  config, loaded = checkpoints.load_params(source)
  assert config == CONFIG
  loaded, expected = layout.flatten(loaded), layout.flatten(params)
  assert loaded.keys() == expected.keys()
  for path, value in expected.items():
    np.testing.assert_array_equal(loaded[path], value, path)


def test_bad_source(tmp_path):
  done = convert(
      f"--source={tmp_path}", f"--destination={tmp_path}/d", "--format=t5x"
  )
  assert done.returncode != 0
  assert "holds neither config.json" in done.stderr

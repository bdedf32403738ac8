"""Tests of `save_t5x`: arguments, places, sources."""

import pytest

from spec_t5x import checkpoints


@pytest.fixture(params=["legacy", "orbax"])
def format(request):
  return request.param


def test_directory_and_step(tmp_path, format, t5_1_1, same_params):
  """Steps share a directory, as in T5X."""
  for step in (0, 12):
    directory = checkpoints.save_t5x(tmp_path, t5_1_1[1], step, format)
    assert directory == tmp_path / f"checkpoint_{step}"
    same_params(checkpoints.load_params(directory)[1], t5_1_1[1])
  names = {path.name for path in tmp_path.iterdir()}
  assert names == {"checkpoint_0", "checkpoint_12"}


def test_never_overwrites(tmp_path, format, t5_1_1):
  checkpoints.save_t5x(tmp_path, t5_1_1[1], format=format)
  with pytest.raises(ValueError, match="new or empty directory. Got .*nt_0"):
    checkpoints.save_t5x(tmp_path, t5_1_1[1], format=format)


def test_failure_leaves_nothing(tmp_path, format, t5_1_1):
  reader = checkpoints.open_checkpoint(
      checkpoints.save_t5x(tmp_path / "source", t5_1_1[1])
  )
  path = "target.decoder.decoder_norm.scale/0"
  (tmp_path / "source" / "checkpoint_0" / path).unlink()
  with pytest.raises(ValueError, match="decoder/decoder_norm/scale"):
    checkpoints.save_t5x(tmp_path / "copy", reader, format=format)
  assert not list((tmp_path / "copy").glob("*"))


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("format", "pickle", "must be 'legacy' or 'orbax'. Got 'pickle'"),
        ("step", -1, "must be at least 0. Got -1"),
        ("dtype", "int8", "must be 'float32' or 'bfloat16'. Got 'int8'"),
    ],
)
def test_arguments(tmp_path, t5_1_1, argument, value, message):
  with pytest.raises(ValueError, match=f"`{argument}` {message}"):
    checkpoints.save_t5x(tmp_path, t5_1_1[1], **{argument: value})


def test_other_params(tmp_path, t5_1_1):
  params = t5_1_1[1]
  del params["decoder"]["layers_1"]["mlp"]
  message = "`params` lacks tensors decoder/layers_1/mlp"
  with pytest.raises(ValueError, match=message):
    checkpoints.save_t5x(tmp_path, params)

"""Editing a saved Hugging Face directory, to make files that others write."""

import json

from safetensors.numpy import load_file, save_file


def edit_tensors(directory, change):
  """Rewrites model.safetensors with some tensors replaced or (None) gone."""
  path = directory / "model.safetensors"
  tensors = load_file(path)
  for name, value in change(tensors).items():
    tensors[name] = value
    if value is None:
      del tensors[name]
  save_file(tensors, path)


def edit_json(path, **changes):
  path.write_text(json.dumps(json.loads(path.read_text()) | changes))

"""Remakes hugging_face.npz with transformers and torch on the CPU.

python tests/goldens/make_hugging_face.py
"""

import pathlib
import sys
import tempfile

import numpy as np
import torch
import transformers

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import parity_models  # noqa: E402

from spec_t5x import checkpoints  # noqa: E402


def hugging_face_outputs(name):
  """Logits of a few texts and greedy decodes of all inputs."""
  with tempfile.TemporaryDirectory() as folder:
    directory = pathlib.Path(folder) / "model"
    checkpoints.save_hugging_face(
        directory,
        parity_models.CONFIGS[name],
        parity_models.params(name),
        dtype="float32",
    )
    model = transformers.T5ForConditionalGeneration.from_pretrained(
        directory, dtype=torch.float32
    ).eval()
  ids = torch.tensor(parity_models.inputs()).long()
  mask = (ids > 0).long()
  targets = torch.tensor(parity_models.targets()).long()
  shifted = torch.nn.functional.pad(targets, (1, 0))[:, :-1]
  scored = slice(0, parity_models.NUM_SCORED)
  with torch.no_grad():
    logits = model(
        input_ids=ids[scored],
        attention_mask=mask[scored],
        decoder_input_ids=shifted,
    ).logits.numpy()
    tokens = model.generate(
        input_ids=ids,
        attention_mask=mask,
        max_new_tokens=parity_models.MAX_DECODE_STEPS,
        num_beams=1,
        do_sample=False,
    ).numpy()[:, 1:]
  width = parity_models.MAX_DECODE_STEPS - tokens.shape[1]
  return logits, np.pad(tokens, ((0, 0), (0, width)))


def main():
  arrays = {}
  for name in parity_models.CONFIGS:
    logits, tokens = hugging_face_outputs(name)
    arrays[f"{name}_logits"] = logits.astype(np.float32)
    arrays[f"{name}_tokens"] = tokens.astype(np.uint8)
  np.savez_compressed(HERE / "hugging_face.npz", **arrays)


if __name__ == "__main__":
  main()

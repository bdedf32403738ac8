"""T5 weights by directory path: Hugging Face and T5X, read and written.

Tensors pass one at a time, so a model never sits in host memory twice:

  config, params = load_params(resolve("google/flan-t5-small"), "bfloat16")
  save_t5x("/models/flan", params)
"""

from spec_t5x.checkpoints.hub import resolve
from spec_t5x.checkpoints.hugging_face import save_hugging_face
from spec_t5x.checkpoints.loading import Put, load_params, open_checkpoint
from spec_t5x.checkpoints.native import save_t5x
from spec_t5x.checkpoints.reader import Reader

__all__ = [
    "Put",
    "Reader",
    "load_params",
    "open_checkpoint",
    "resolve",
    "save_hugging_face",
    "save_t5x",
]

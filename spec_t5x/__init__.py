"""Exact speculative decoding for T5 in JAX.

target = spec_t5x.load("path/to/target")
draft = spec_t5x.load("path/to/draft")
decoder = spec_t5x.Decoder(target, draft, gamma=5, temperature=0.0)
result = decoder(["Open the file."])
"""

from spec_t5x.decoder import Decoder, DecodeResult
from spec_t5x.drafts import NgramTable, PromptLookup
from spec_t5x.model import Model, load
from spec_t5x.shortlist import shorten

__all__ = [
    "DecodeResult",
    "Decoder",
    "Model",
    "NgramTable",
    "PromptLookup",
    "load",
    "shorten",
]
__version__ = "0.1.0"

"""Sources of proposals; each implements `types.Draft`."""

from spec_t5x.drafts.model import ModelDraft
from spec_t5x.drafts.ngram import NgramScorer
from spec_t5x.drafts.ngram_table import NgramTable
from spec_t5x.drafts.prompt_lookup import PromptLookup, PromptLookupDraft

__all__ = [
    "ModelDraft",
    "NgramScorer",
    "NgramTable",
    "PromptLookup",
    "PromptLookupDraft",
]

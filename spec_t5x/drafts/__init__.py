"""Sources of proposals; each implements `types.Draft`."""

from spec_t5x.drafts.model import ModelDraft

__all__ = ["ModelDraft"]

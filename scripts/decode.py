r"""Decodes a file of texts, with or without a draft.

  python scripts/decode.py --gin_file=configs/decoding/speculative.gin \
    --gin.TARGET=\"DIR\" --gin.DRAFT=\"DIR\" --gin.GAMMA=5 \
    --gin.TEMPERATURE=0.0 --gin.INPUTS=\"in.txt\" --gin.OUTPUTS=\"out.jsonl\"

`--gin.DRAFT=None` decodes plainly; the gin file describes all settings. A run
that was stopped is resumed by the same command. To see how a text is decoded,
here that of line 3: `--gin.TRACE=3`.
"""

from spec_t5x import gin_flags
from spec_t5x.decode_job import DecodeJob

if __name__ == "__main__":
  gin_flags.run_job(DecodeJob, DecodeJob.run)

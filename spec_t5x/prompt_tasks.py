"""SeqIO tasks of Chen et al. 2023 for decoder-only models: inputs are prompts.

  spec_t5x_xsum_1shot  a news article's summary, behind one example
  spec_t5x_humaneval   Python functions to be completed

Registered by a call, as those of `tasks`. Decoding ends at EOS alone; a
prediction is cut at the stop sequences afterwards, before it is scored.
"""

import os
from collections.abc import Sequence
from typing import Any

import seqio

from spec_t5x import (
    benchmarks,
    corpora,
    humaneval,
    prompts,
    seqio_tasks,
    tasks,
)

__all__ = ["register_humaneval", "register_xsum_1shot"]

_NAMES = ("inputs", "targets")


def register_xsum_1shot(
    vocabulary_path: str | os.PathLike[str],
    *,
    extra_ids: int = 100,
    name_prefix: str = "spec_t5x_",
) -> str:
  """Registers XSum with a prompt of one example.

  Args:
    vocabulary_path: See `tasks.register_papers`.
    extra_ids: See `tasks.register_papers`.
    name_prefix: Put before the task's name.

  Returns:
    The name of the task. Asking again with the same arguments is harmless.

  Raises:
    FileNotFoundError: There is no file at `vocabulary_path`.
    ValueError: The name is taken by a task with another vocabulary.
  """
  vocabulary = seqio_tasks.load_vocabulary(vocabulary_path, extra_ids)
  load = lambda split: benchmarks.load("xsum_1shot", split).pairs
  return seqio_tasks.register(
      name_prefix + "xsum_1shot",
      seqio_tasks.pairs_source(load, corpora.SPLITS),
      seqio_tasks.features(vocabulary, _NAMES, prompt="inputs"),
      metric_fn=tasks.rouge,
      postprocess_fn=_first_summary,
  )


def _first_summary(text: str, is_target: bool = False, **_: Any) -> str:
  stops = () if is_target else prompts.ONE_SHOT_STOPS
  return seqio_tasks.normalize_spaces(prompts.cut(text, stops))


def register_humaneval(
    vocabulary: seqio.Vocabulary,
    *,
    samples: int = 1,
    run_programs: bool = False,
    name_prefix: str = "spec_t5x_",
) -> str:
  """Registers HumanEval.

  Args:
    vocabulary: One that keeps line breaks and indents; T5's does not.
    samples: How often each problem is decoded; 100 in the paper.
    run_programs: Whether the metric, `pass@1`, may run the programs that the
      model wrote. Without, decoding works and the metric raises ValueError.
    name_prefix: Put before the task's name.

  Returns:
    The name of the task. Asking again with the same arguments is harmless.

  Raises:
    FileNotFoundError: The package of HumanEval is not installed.
    ValueError: `vocabulary` loses line breaks, or the name is taken by a task
      with another one.
  """
  humaneval.check_vocabulary(vocabulary)
  problems = {p.task_id: p for p in humaneval.load_problems()}
  pairs = [problem.to_pair() for problem in problems.values()] * samples

  def pass_rate(targets: Sequence[str], predictions: Sequence[str]):
    pairs = zip([problems[t] for t in targets], predictions, strict=True)
    rate = humaneval.pass_rate(list(pairs), run_programs=run_programs)
    return {"pass@1": rate}

  return seqio_tasks.register(
      name_prefix + "humaneval",
      seqio_tasks.pairs_source(lambda _: pairs, ("test",)),
      seqio_tasks.features(vocabulary, _NAMES, prompt="inputs"),
      metric_fn=pass_rate,
      postprocess_fn=_problem_or_text,
  )


def _problem_or_text(
    text: str, example: Any = None, is_target: bool = False
) -> str:
  # What is asked for is not a text, but to pass the problem's test.
  return example["origin"].decode() if is_target else text

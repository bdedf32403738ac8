"""A file imports only from its own floor or lower ones, and not in circles.

Floors keep the mathematics free of models, models free of files, and the loop
readable without any of them. Also here: the bounds on the size of files and
functions, and what `import spec_t5x` may load.
"""

import ast
import functools
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "spec_t5x"

# Lowest first; a package stands for all its modules.
FLOORS = (
    "types config",
    "standardize acceptance verification theory statistics",
    "biases layers attention cache stacks network packing partitioning",
    "law texts drafts decoding_types loop_state decoding",
    "atomic processes provenance vocabulary corpora batching metrics programs"
    " prompts humaneval paper_data benchmarks seqio_tasks tasks prompt_tasks"
    " checkpoints model shortlist inputs draft placement decode_result"
    " decoder t5x_options t5x_decoding t5x_decode_fn t5x_model t5x_plugin",
    "decode_batches decode_files decode_job decode_summary distill gin_flags"
    " grow optimizers process_flags train train_curve train_data train_job"
    " train_loss train_mixture train_quality train_state trace experiments"
    " report text_flags tpu",
)
FLOOR_OF = {
    name: number
    for number, names in enumerate(FLOORS)
    for name in names.split()
}
# Mathematics: these and nothing else.
MATHEMATICS_IMPORTS = {"jax", "jaxtyping", "numpy", "spec_t5x"}

MAX_LINES = 300
MAX_BODY = 40


def modules():
  """Dotted name to path, of every file of the package."""
  return {
      ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
      for path in sorted(PACKAGE.rglob("*.py"))
      if path != PACKAGE / "__init__.py"
  }


MODULES = modules()


@functools.cache
def tree(name):
  return ast.parse(MODULES[name].read_text("utf-8"))


def imported(name):
  """Full names of what a module imports, wherever in the file."""
  names = set()
  for node in ast.walk(tree(name)):
    if isinstance(node, ast.Import):
      names |= {alias.name for alias in node.names}
    elif isinstance(node, ast.ImportFrom):
      assert node.level == 0, f"{name}: relative import"
      names |= {f"{node.module}.{alias.name}" for alias in node.names}
  return names


def own_imports(name):
  """Modules of this package that a module imports."""
  found = set()
  for full in imported(name):
    parts = full.split(".")
    if parts[0] != "spec_t5x":
      continue
    for length in range(len(parts), 1, -1):
      candidate = ".".join(parts[1:length])
      if candidate in MODULES:
        found.add(candidate)
        break
      if f"{candidate}.__init__" in MODULES:
        found.add(f"{candidate}.__init__")
        break
  return found - {name}


def floor(name):
  return FLOOR_OF[name.split(".")[0]]


def test_every_file_has_a_floor():
  assert {name.split(".")[0] for name in MODULES} == set(FLOOR_OF)


@pytest.mark.parametrize("name", MODULES)
def test_imports_go_down(name):
  above = {other for other in own_imports(name) if floor(other) > floor(name)}
  assert not above


def test_no_circles():
  done, path = set(), []

  def visit(name):
    assert name not in path, " -> ".join([*path, name])
    if name in done:
      return
    path.append(name)
    for other in sorted(own_imports(name)):
      visit(other)
    done.add(path.pop())

  for name in MODULES:
    visit(name)


@pytest.mark.parametrize("name", FLOORS[1].split())
def test_mathematics_needs_jax_alone(name):
  outside = {full.split(".")[0] for full in imported(name)}
  standard = set(sys.stdlib_module_names)
  assert outside - standard <= MATHEMATICS_IMPORTS


def test_only_the_plug_in_imports_t5x():
  users = {
      name
      for name in MODULES
      if any(full.split(".")[0] == "t5x" for full in imported(name))
  }
  assert users <= {"t5x_plugin"}


def test_only_the_command_line_imports_gin():
  users = {
      name
      for name in MODULES
      if any(full.split(".")[0] == "gin" for full in imported(name))
  }
  assert users <= {"gin_flags", "t5x_plugin"}


def test_importing_the_package_loads_nothing_heavy():
  heavy = ["gin", "orbax", "seqio", "t5x", "tensorflow", "tensorstore", "torch"]
  code = (
      "import sys, spec_t5x;"
      f"print([name for name in {heavy} if name in sys.modules])"
  )
  done = subprocess.run(
      [sys.executable, "-c", code],
      cwd=ROOT,
      capture_output=True,
      text=True,
      check=True,
  )
  assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", MODULES)
def test_files_and_functions_are_short(name):
  lines = MODULES[name].read_text("utf-8").count("\n")
  assert lines <= MAX_LINES
  for node in ast.walk(tree(name)):
    if isinstance(node, ast.FunctionDef) and node.body:
      first = node.body[0]
      if ast.get_docstring(node) and len(node.body) > 1:
        first = node.body[1]
      length = node.end_lineno - first.lineno + 1
      assert length <= MAX_BODY, f"{node.name}: {length} lines"

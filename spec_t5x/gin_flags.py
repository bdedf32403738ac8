"""Command lines of the scripts, spelt as T5X's.

  --gin_file=configs/decoding/speculative.gin --gin.TARGET=\\"DIR\\"

A script ends in `gin_flags.run_job(Job)`: files and bindings are parsed, and
the job that they describe is done. Gin files import what they configure
(`dynamic_registration`), so that the library itself knows nothing of gin.
"""

import contextlib
import difflib
import os
import pathlib
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import gin
from absl import app, flags, logging

from spec_t5x import atomic, process_flags, processes

J = TypeVar("J")

# What a shell reports of a program that SIGINT ended.
_INTERRUPTED = 130

_FILES = flags.DEFINE_multi_string(
    "gin_file", [], "Gin file; may be given more than once."
)
_SEARCH_PATHS = flags.DEFINE_multi_string(
    "gin_search_paths", [], "Directory in which gin files are looked for."
)
_BINDINGS = flags.DEFINE_multi_string(
    "gin_bindings", [], "Binding NAME=VALUE; --gin.NAME=VALUE is the same."
)


def execute(job: Any) -> None:
  """Does a job, and keeps beside its results what it was told to do.

  Args:
    job: has `execute`, which does the work, and `directory`.
  """
  job.execute()
  save(job.directory)


def run_job(job: type[J], do: Callable[[J], Any] = execute) -> None:
  """Parses flags and gin, then does the job that they describe.

  Args:
    job: its class, which gin configures.
    do: does a job.
  """
  run(lambda _: do(gin.get_configurable(job)()))


def run(main: Callable[[Sequence[str]], None]) -> None:
  """Parses flags and gin, then calls `main` as `absl.app.run` does.

  Ctrl-C ends the program with a word on how to go on: every job resumes.
  """

  def parsed_main(argv: Sequence[str]) -> None:
    if len(argv) > 1:
      raise app.UsageError(f"Unknown arguments {argv[1:]}.")
    if not flags.FLAGS["verbosity"].present:
      # JAX tells of its cache, and of devices that it did not find.
      logging.set_verbosity(logging.WARNING)
    for path in _SEARCH_PATHS.value:
      gin.add_config_file_search_path(path)
    try:
      parse(_FILES.value, _BINDINGS.value)
      process_flags.join()
    except ValueError as error:
      raise app.UsageError(str(error)) from error
    try:
      main(argv)
    except Exception:
      processes.leave_failed()
      raise
    except KeyboardInterrupt:
      sys.stdout.flush()
      print("Stopped. The same command resumes.", file=sys.stderr, flush=True)
      # The ordinary way out would pull down XLA under a compilation that its
      # threads are still at.
      os._exit(_INTERRUPTED)

  app.run(
      parsed_main,
      flags_parser=lambda argv: app.parse_flags_with_usage(rewrite(argv)),
  )


def rewrite(argv: Sequence[str]) -> list[str]:
  """Turns each `--gin.NAME=VALUE` into `--gin_bindings=NAME=VALUE`."""
  return [re.sub(r"^--?gin\.", "--gin_bindings=", word) for word in argv]


def parse(files: Sequence[str], bindings: Sequence[str]) -> None:
  """Parses files, then bindings, which override them.

  Args:
    files: gin files, the later ones overriding the earlier ones.
    bindings: `NAME=VALUE`, NAME a macro of the files or a parameter that they
      configure.

  Raises:
    ValueError: there is no file, a file or binding is malformed, a macro does
      not exist or has no value.
  """
  if not files:
    raise ValueError("`--gin_file` must be given at least once. Got none.")
  for file in files:
    with _naming(f"--gin_file={file}"):
      gin.parse_config_file(file)
  macros = re.findall(r"^(\w+) =", gin.config_str(), re.MULTILINE)
  for binding in bindings:
    _check_macro(binding, macros)
    with _naming(f"--gin.{binding}"):
      gin.parse_config(binding)
  try:
    gin.finalize()
  except ValueError as error:
    missing = re.match(r"(\w+)/macro\.value set to `%gin.REQUIRED`", str(error))
    if not missing:
      raise
    raise ValueError(
        f"`--gin.{missing[1]}` must be given: {files[-1]} has no default."
    ) from error


def save(directory: str | os.PathLike[str]) -> None:
  """Writes what gin was told, and what of it was used, beside results.

  In a job of several processes the first one does.

  Args:
    directory: of the results; made if it is missing.
  """
  if not processes.is_first():
    return
  directory = pathlib.Path(directory)
  directory.mkdir(parents=True, exist_ok=True)
  # Defaults that no file binds are in the second alone.
  atomic.write_text(directory / "config.gin", gin.config_str())
  atomic.write_text(
      directory / "operative_config.gin", gin.operative_config_str()
  )


@contextlib.contextmanager
def _naming(flag: str) -> Iterator[None]:
  """Gives gin's errors the name of the flag that caused them."""
  try:
    yield
  except (SyntaxError, ValueError, OSError) as error:
    # Shells eat plain quotes, and gin then meets a bare word.
    bare = re.fullmatch(r"(--gin\.[\w.]+=)\s*([A-Za-z/.~].*)", flag)
    hint = rf" A text needs quotes: {bare[1]}\"{bare[2]}\"" if bare else ""
    raise ValueError(f"`{flag}` cannot be used: {error}.{hint}") from error


def _check_macro(binding: str, macros: Sequence[str]) -> None:
  """Raises ValueError for a macro that no file has, which gin would accept."""
  name = binding.partition("=")[0].strip()
  if not re.fullmatch(r"\w+", name) or name in macros:
    return
  close = difflib.get_close_matches(name, macros, 1)
  hint = f" Did you mean {close[0]}?" if close else ""
  raise ValueError(
      f"`--gin.{name}` must name one of {', '.join(sorted(macros))}.{hint}"
  )

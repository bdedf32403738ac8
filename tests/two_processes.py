"""Running two processes of four virtual CPU devices each."""

import os
import pathlib
import socket
import subprocess
import sys

TESTS = pathlib.Path(__file__).parent
FLAGS = (
    "--xla_force_host_platform_device_count=4"
    # Compiled programs run once or twice: time goes into making them.
    " --xla_backend_optimization_level=0"
)


def free_port():
  """Returns a port that nothing listens at."""
  with socket.socket() as listener:
    listener.bind(("127.0.0.1", 0))
    return listener.getsockname()[1]


def run(*commands, **environment):
  """Runs Python programs at once, from the root; returns what they printed.

  Raises:
    AssertionError: one failed.
  """
  path = [str(TESTS.parent), str(TESTS), *filter(None, sys.path)]
  started = [
      subprocess.Popen(
          [sys.executable, *command],
          cwd=TESTS.parent,
          env=os.environ
          | {
              "JAX_PLATFORMS": "cpu",
              "PYTHONPATH": os.pathsep.join(path),
              "XLA_FLAGS": FLAGS,
          }
          | environment,
          stdout=subprocess.PIPE,
          stderr=subprocess.PIPE,
          text=True,
      )
      for command in commands
  ]
  try:
    printed = [process.communicate() for process in started]
  finally:
    for process in started:
      process.kill()
  codes = [process.returncode for process in started]
  assert not any(codes), "\n".join(errors for _, errors in printed)
  return [output for output, _ in printed]


def run_job(command, outputs, **environment):
  """Runs one command in both processes of a job.

  Args:
    command: program and arguments, the flags of the processes left out.
    outputs: further arguments of each of the two.
    **environment: variables of both.
  """
  flags = [
      f"--coordinator_address=127.0.0.1:{free_port()}",
      "--process_count=2",
  ]
  return run(
      *(
          [*command, *flags, f"--process_index={index}", *own]
          for index, own in enumerate(outputs)
      ),
      **environment,
  )

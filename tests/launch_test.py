"""Tests of the launchers: what they would run, and that it arrives whole.

No cluster is needed: `gcloud`, `srun` and `scontrol` are stand-ins that run
what they are told to here.
"""

import json
import os
import pathlib
import shlex
import shutil
import stat
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[1]
# Words that a shell would take apart.
ARGUMENTS = [
    "--gin_file=configs/experiments/ende.gin",
    "--gin.MESH=(1, 8)",
    "--gin.DRAFTS={'small': \"it's $HOME/*\"}",
    '--gin.RUN="two\nlines; `echo no`"',
    "--empty=",
    "",
]
TPU = {"TPU_NAME": "my-slice", "TPU_ZONE": "us-east5-a"}
SLURM = {"SLURM_JOB_NODELIST": "node[7-8]"}
# Notes what an interpreter is called with.
INTERPRETER = """#!/usr/bin/env python3
import json, os, sys
names = sorted(name for name in os.environ if name.startswith("JAX_"))
with open({log!r}, "a") as file:
  file.write(json.dumps([
      os.getcwd(), os.environ["PYTHONPATH"], sys.argv[1:],
      {{name: os.environ[name] for name in names}},
  ]) + "\\n")
"""
GCLOUD = """#!/usr/bin/env bash
last="${*: -1:1}"
cd "$HOME" && exec bash -c "${last#--command=}"
"""
SRUN = """#!/usr/bin/env bash
while [[ "$1" == --* ]]; do shift; done
for i in 0 1; do SLURM_PROCID=$i "$@"; done
"""
SCONTROL = """#!/usr/bin/env bash
[[ "$*" == "show hostnames node[7-8]" ]] && printf 'node7\\nnode8\\n'
"""


@pytest.fixture
def launch(tmp_path):
  """Runs a launcher with stand-ins; returns it, and what it started."""
  programs = tmp_path / "bin"
  programs.mkdir()
  log = tmp_path / "log"
  checkout = tmp_path / "home" / "spec_t5x"
  shutil.copytree(ROOT / "scripts", checkout / "scripts")

  def add(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)

  interpreter = INTERPRETER.format(log=str(log))
  add(checkout / ".venv" / "bin" / "python", interpreter)
  add(programs / "interpreter", interpreter)
  add(programs / "gcloud", GCLOUD)
  add(programs / "srun", SRUN)
  add(programs / "scontrol", SCONTROL)

  def run(script, *arguments, **environment):
    done = subprocess.run(
        ["bash", str(ROOT / "scripts" / script), *arguments],
        env={
            "HOME": str(tmp_path / "home"),
            "PATH": f"{programs}:{os.environ['PATH']}",
            **environment,
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = log.read_text().splitlines() if log.exists() else []
    return done, [json.loads(line) for line in lines]

  return run


def test_every_host_of_a_slice_gets_the_words(launch, tmp_path):
  done, [started] = launch("launch.sh", "sweep", *ARGUMENTS, **TPU)
  assert done.returncode == 0, done.stderr
  words = ["scripts/sweep.py", "--multiprocess", *ARGUMENTS]
  assert started == [str(tmp_path / "home" / "spec_t5x"), ".", words, {}]


def test_dry_run_prints_the_command_and_runs_nothing(launch):
  words = ARGUMENTS[:3]
  done, started = launch("launch.sh", "--dry-run", "train", *words, **TPU)
  assert done.returncode == 0, done.stderr
  assert not started
  *command, remote = shlex.split(done.stdout)
  assert (
      command
      == (
          "gcloud alpha compute tpus tpu-vm ssh my-slice --zone=us-east5-a"
          " --worker=all"
      ).split()
  )
  assert shlex.split(remote.removeprefix("--command=")) == [
      *"cd spec_t5x && exec env PYTHONPATH=. .venv/bin/python".split(),
      *"scripts/train.py --multiprocess".split(),
      *words,
  ]


def test_printed_command_is_the_one_that_runs(launch, tmp_path):
  dry, _ = launch("launch.sh", "--dry-run", "decode", *ARGUMENTS, **TPU)
  home = tmp_path / "home"
  subprocess.run(
      ["bash", "-c", dry.stdout],
      env={"HOME": str(home), "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"},
      check=True,
  )
  _, [printed, ran] = launch("launch.sh", "decode", *ARGUMENTS, **TPU)
  assert printed == ran
  assert ran[2] == ["scripts/decode.py", "--multiprocess", *ARGUMENTS]


def test_settings_of_a_slice(launch):
  done, _ = launch(
      "launch.sh",
      "--dry-run",
      "infer",
      "--gin_file=a.gin",
      TPU_PROJECT="my project",
      REMOTE_DIR="/opt/it's here",
      REMOTE_PYTHON="/opt/python",
      T5X_PYTHONPATH="/opt/t5x:/opt/airio",
      **TPU,
  )
  *command, remote = shlex.split(done.stdout)
  assert "--project=my project" in command
  assert shlex.split(remote.removeprefix("--command=")) == [
      "cd",
      "/opt/it's here",
      "&&",
      "exec",
      "env",
      "PYTHONPATH=.:/opt/t5x:/opt/airio",
      "/opt/python",
      "scripts/infer_t5x.py",
      "--multiprocess",
      "--gin_file=a.gin",
  ]


def test_every_node_of_an_allocation_gets_words_and_number(launch):
  done, started = launch(
      "launch_slurm.sh", "train", *ARGUMENTS, PYTHON="interpreter", **SLURM
  )
  assert done.returncode == 0, done.stderr
  assert started == [
      [
          str(ROOT),
          ".",
          ["scripts/train.py", *ARGUMENTS],
          {
              "JAX_COORDINATOR_ADDRESS": "node7:12321",
              "JAX_PROCESS_COUNT": "2",
              "JAX_PROCESS_INDEX": index,
          },
      ]
      for index in "01"
  ]


def test_dry_run_under_slurm(launch):
  done, started = launch(
      "launch_slurm.sh",
      "--dry-run",
      "sweep",
      "--gin_file=a.gin",
      COORDINATOR_PORT="99",
      **SLURM,
  )
  assert not started
  assert shlex.split(done.stdout) == [
      *"srun --nodes=2 --ntasks=2 --ntasks-per-node=1".split(),
      "--kill-on-bad-exit=1",
      *"env PYTHONPATH=. JAX_COORDINATOR_ADDRESS=node7:99".split(),
      "JAX_PROCESS_COUNT=2",
      "bash",
      "-c",
      'JAX_PROCESS_INDEX="$SLURM_PROCID" exec "$@"',
      *"bash python scripts/sweep.py --gin_file=a.gin".split(),
  ]


@pytest.mark.parametrize(
    ("script", "arguments", "environment", "message"),
    [
        ("launch.sh", "", TPU, "launch.sh: usage: "),
        ("launch.sh", "swep --gin_file=a", TPU, "decode|train|sweep|infer"),
        ("launch.sh", "sweep", TPU, "scripts/sweep.py needs --gin_file=FILE"),
        ("launch.sh", "infer --gin_file=a", TPU, "infer needs T5X_PYTHONPATH"),
        (
            "launch.sh",
            "sweep --gin_file=a",
            {"TPU_ZONE": "z"},
            "TPU_NAME must name the slice",
        ),
        (
            "launch.sh",
            "sweep --gin_file=a",
            {"TPU_NAME": "n"},
            "TPU_ZONE must name the zone of n",
        ),
        ("launch_slurm.sh", "sweep --gin_file=a", {}, "salloc or sbatch"),
        (
            "launch_slurm.sh",
            "sweep --gin_file=a",
            {"SLURM_JOB_NODELIST": "other"},
            "scontrol cannot tell the nodes other",
        ),
    ],
)
@pytest.mark.parametrize("dry_run", [[], ["--dry-run"]])
def test_errors(launch, dry_run, script, arguments, environment, message):
  done, started = launch(script, *dry_run, *arguments.split(), **environment)
  assert done.returncode == 2
  assert message in done.stderr
  assert not started


def test_scripts_are_clean():
  checker = shutil.which("shellcheck")
  if checker is None:
    pytest.skip("shellcheck is not installed")
  scripts = sorted((ROOT / "scripts").glob("launch*.sh"))
  subprocess.run([checker, "-x", *scripts], cwd=ROOT, check=True)

#!/usr/bin/env bash
# Starts a job on every host of a Cloud TPU slice:
#   TPU_NAME=my-slice TPU_ZONE=us-east5-a bash scripts/launch.sh sweep \
#     --gin_file=configs/experiments/ende.gin --gin.MESH='(1, 8)'
# The job is decode, train, sweep or infer (T5X's infer.py); what follows it
# goes to its script. With --dry-run before the job the command is printed and
# not run. A job that was stopped is resumed by the same command.
#
# To be set:
#   TPU_NAME         the slice
#   TPU_ZONE         its zone
# May be set:
#   TPU_PROJECT      its project (default: gcloud's)
#   REMOTE_DIR       checkout of this project on every host, absolute or from
#                    the home directory (default: spec_t5x)
#   REMOTE_PYTHON    interpreter there (default: .venv/bin/python in it)
#   T5X_PYTHONPATH   for infer: checkouts of T5X, airio and jestimator there,
#                    separated by colons
# The hosts are made ready once, by gcloud's `tpu-vm ssh --worker=all` with
#   git clone URL spec_t5x && cd spec_t5x && source scripts/setup_env.sh &&
#   pip install -e '.[tpu]'
# Weights, inputs and outputs must be on storage that all hosts share, and MESH
# must name all chips of the slice.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/launch_job.sh

parse_job "$@"
[[ -n "${TPU_NAME:-}" ]] || fail "TPU_NAME must name the slice"
[[ -n "${TPU_ZONE:-}" ]] || fail "TPU_ZONE must name the zone of $TPU_NAME"
"$dry_run" || command -v gcloud > /dev/null || fail "gcloud is not on PATH"

python="${REMOTE_PYTHON:-.venv/bin/python}"
path=".${T5X_PYTHONPATH:+:$T5X_PYTHONPATH}"
remote="cd $(quote "${REMOTE_DIR:-spec_t5x}") && exec env $(
  quote "PYTHONPATH=$path" "$python" "$script" --multiprocess "${arguments[@]}"
)"
run gcloud alpha compute tpus tpu-vm ssh "$TPU_NAME" --zone="$TPU_ZONE" \
  ${TPU_PROJECT:+--project="$TPU_PROJECT"} --worker=all --command="$remote"

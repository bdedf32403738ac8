#!/usr/bin/env bash
# Starts a job on every node of a SLURM allocation, one process to a node:
#   salloc --nodes=2 --gpus-per-node=8 bash scripts/launch_slurm.sh sweep \
#     --gin_file=configs/experiments/t5_11b.gin --gin.MESH='(1, 16)'
# The job is decode, train, sweep or infer (T5X's infer.py); what follows it
# goes to its script. With --dry-run before the job the command is printed and
# not run. A job that was stopped is resumed by the same command.
#
# In a batch job: sbatch --nodes=2 --gpus-per-node=8 job.sh, where job.sh has
# the line `bash scripts/launch_slurm.sh ...` and stands in this project.
# May be set:
#   PYTHON            interpreter, the same on all nodes (default: python of
#                     the active environment)
#   COORDINATOR_PORT  free port of the first node (default: 12321)
#   T5X_PYTHONPATH    for infer: checkouts of T5X, airio and jestimator,
#                     separated by colons
# The project, weights, inputs and outputs must be on storage that all nodes
# share, and MESH must name all devices of the allocation.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/launch_job.sh

parse_job "$@"
[[ -n "${SLURM_JOB_NODELIST:-}" ]] ||
  fail "SLURM_JOB_NODELIST is not set: to be run by salloc or sbatch"
names="$(scontrol show hostnames "$SLURM_JOB_NODELIST")" ||
  fail "scontrol cannot tell the nodes $SLURM_JOB_NODELIST"
mapfile -t nodes <<< "$names"

# Each node's process learns its number from SLURM.
# shellcheck disable=SC2016
start='JAX_PROCESS_INDEX="$SLURM_PROCID" exec "$@"'
run srun --nodes="${#nodes[@]}" --ntasks="${#nodes[@]}" --ntasks-per-node=1 \
  --kill-on-bad-exit=1 \
  env "PYTHONPATH=.${T5X_PYTHONPATH:+:$T5X_PYTHONPATH}" \
  "JAX_COORDINATOR_ADDRESS=${nodes[0]}:${COORDINATOR_PORT:-12321}" \
  "JAX_PROCESS_COUNT=${#nodes[@]}" \
  bash -c "$start" bash "${PYTHON:-python}" "$script" "${arguments[@]}"

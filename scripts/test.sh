#!/usr/bin/env bash
# Lint, format check, tests, and one short sweep of the shipped models.
# Arguments go to pytest: scripts/test.sh -m slow
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/setup_env.sh

export JAX_PLATFORMS="${JAX_PLATFORMS:-cpu}"
ruff check .
pyink --check --quiet .
# A file's tests share models and compiled programs: they stay together.
python -m pytest -n 2 --dist loadfile "$@"

results="$(mktemp -d)"
trap 'rm -rf "$results"' EXIT
python scripts/sweep.py --gin_file=configs/experiments/ende_smoke.gin \
  --gin.RESULTS=\"$results\"

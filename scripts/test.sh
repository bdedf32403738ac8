#!/usr/bin/env bash
# Lint, format check and tests. Arguments go to pytest: scripts/test.sh -m slow
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/setup_env.sh

export JAX_PLATFORMS="${JAX_PLATFORMS:-cpu}"
ruff check .
pyink --check --quiet .
python -m pytest "$@"

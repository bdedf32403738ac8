#!/usr/bin/env bash
# Measures the shipped models on this machine and regenerates the tables:
#   bash scripts/reproduce.sh          the best draft, minutes on 2 CPU cores
#   bash scripts/reproduce.sh --full   every draft, gamma and lenience, hours
# Needs Python 3.11; installs what it needs (see setup_env.sh). Nothing else
# should run meanwhile: these are timings. Stopped, it goes on where it was.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1:-}" in
  "") experiments=(ende_quick) ;;
  --full) experiments=(ende summ ende_ngrams summ_ngrams ende_lenience) ;;
  *)
    echo "usage: bash scripts/reproduce.sh [--full]" >&2
    exit 2
    ;;
esac

source scripts/setup_env.sh
if [[ "${1:-}" == --full ]]; then
  for task in ende summ; do
    for order in 1 2 3; do
      table="runs/${task}_$order.ngram"
      [[ -e "$table" ]] || python scripts/build_ngrams.py \
        --task="$task" --order="$order" --output="$table"
    done
  done
fi
for experiment in "${experiments[@]}"; do
  echo "reproduce: configs/experiments/$experiment.gin"
  python scripts/sweep.py --gin_file="configs/experiments/$experiment.gin"
done

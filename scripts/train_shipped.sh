#!/usr/bin/env bash
# Trains the shipped models again, each after those that it begins from:
#   bash scripts/train_shipped.sh
# Six hours on 2 CPU cores. Stopped, it goes on where it was; what is trained
# already is only exported again. Models are left in runs/<name>/model.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/setup_env.sh

recipes=(
  ende_target_shallow ende_target target
  ende_small small
  ende_small_distilled small_distilled_shallow small_distilled
  ende_base ende_large
)
for recipe in "${recipes[@]}"; do
  echo "train_shipped: configs/experiments/train_$recipe.gin"
  python scripts/train.py --gin_file="configs/experiments/train_$recipe.gin"
done

# What the launchers share; to be sourced by them.
#   source scripts/launch_job.sh
# shellcheck shell=bash

# Ends a launcher with a word on what is wrong.
fail() {
  echo "$(basename "$0"): $*" >&2
  exit 2
}

# Prints words as one line that a shell reads as these very words.
quote() {
  local line
  printf -v line '%q ' "$@"
  echo "${line% }"
}

# Sets dry_run, script and arguments from the command line of a launcher:
#   [--dry-run] decode|train|sweep|infer [argument...]
parse_job() {
  dry_run=false
  if [[ "${1:-}" == --dry-run ]]; then
    dry_run=true
    shift
  fi
  case "${1:-}" in
    decode | train | sweep) script="scripts/$1.py" ;;
    infer)
      script=scripts/infer_t5x.py
      [[ -n "${T5X_PYTHONPATH:-}" ]] ||
        fail "infer needs T5X_PYTHONPATH: T5X and what it imports, by ':'"
      ;;
    *) fail "usage: [--dry-run] decode|train|sweep|infer [argument...]" ;;
  esac
  shift
  # shellcheck disable=SC2034  # The launchers read it.
  arguments=("$@")
  [[ " $* " == *" --gin_file"* ]] || fail "$script needs --gin_file=FILE"
}

# Runs a command, or prints it with --dry-run.
run() {
  if "$dry_run"; then
    quote "$@"
  else
    exec "$@"
  fi
}

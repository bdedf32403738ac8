# Makes the Python environment ready; to be sourced by the other scripts:
#   source scripts/setup_env.sh
# Uses the active virtual environment, or else makes `.venv` beside the
# project, and installs the versions in constraints.txt into it. Does nothing
# when they are there already. PYTHON names the interpreter (default python3).

_root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

if [[ -z "${VIRTUAL_ENV:-}" ]]; then
  _python="${PYTHON:-python3}"
  if ! "$_python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "setup_env: needs Python 3.11 or newer; set PYTHON" >&2
    return 1
  fi
  if [[ ! -x "$_root/.venv/bin/python" ]]; then
    echo "setup_env: making $_root/.venv"
    "$_python" -m venv "$_root/.venv"
  fi
  source "$_root/.venv/bin/activate"
fi

# The folder is part of the key: an editable install points to one checkout.
_key="$(cd "$_root" && { pwd; cat setup.py constraints.txt; } | sha256sum)"
_stamp="$VIRTUAL_ENV/spec_t5x.stamp"

if [[ "$(cat "$_stamp" 2>/dev/null)" == "$_key" ]]; then
  echo "setup_env: $VIRTUAL_ENV is up to date"
else
  echo "setup_env: installing constraints.txt into $VIRTUAL_ENV"
  # --no-deps: the list is complete, and tensorflow-cpu stands in for the
  # tensorflow that seqio asks for, which is several times as large.
  python -m pip install -qq --no-deps -r "$_root/constraints.txt"
  python -m pip install -qq --no-deps --no-build-isolation -e "$_root"
  echo "$_key" > "$_stamp"
fi

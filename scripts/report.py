r"""Remakes the tables and figures under `results/` from the raw counts.

python scripts/report.py --results=results
"""

import pathlib

from absl import app, flags

from spec_t5x.report import build

_RESULTS = flags.DEFINE_string("results", "results", "Directory of results.")


def main(_: list[str]) -> None:
  """Writes the files and names them."""
  for path in build.build(pathlib.Path(_RESULTS.value)):
    print(path)


if __name__ == "__main__":
  app.run(main)

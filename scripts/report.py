r"""Remakes the tables and figures under `results/` from the raw counts.

The README beside `results/` gets its table, too.

python scripts/report.py --results=results
"""

import pathlib

from absl import app, flags

from spec_t5x.report import build, headline, measures

_RESULTS = flags.DEFINE_string("results", "results", "Directory of results.")


def main(_: list[str]) -> None:
  """Writes the files and names them."""
  results = pathlib.Path(_RESULTS.value)
  written = build.build(results)
  readme = results.resolve().parent / "README.md"
  for path in written + headline.update(readme, measures.runs(results)):
    print(path)


if __name__ == "__main__":
  app.run(main)

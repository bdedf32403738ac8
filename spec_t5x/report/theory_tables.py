"""What the papers print from theory alone, remade from formulas.

Table 1, the figures and Table 4 are of Leviathan et al. 2023; `chen_theory` has
what a formula tells about Chen et al. 2023.

Printed values stand beside ours. Table 4's are made from alpha and c before
rounding, ours from the rounded ones, so it has the range of values that the
rounding leaves open; a printed value agrees if the range reaches it.
"""

import itertools
from collections.abc import Callable

import numpy as np

from spec_t5x import theory
from spec_t5x.report import chen_theory, reference
from spec_t5x.report.table import Table
from spec_t5x.report.tables import Row, to_csv

# What the figures of the paper show.
ALPHAS = tuple(round(0.5 + 0.01 * i, 2) for i in range(41))
FIGURE2_GAMMAS = (1, 3, 5, 7, np.inf)
FIGURE3_COSTS = (0.01, 0.02, 0.05, 0.1)
FIGURE4_GAMMAS = (1, 3, 5, 7, 10)

# The appendix compares the rules by formula only. Here the target has a law
# like Zipf's, probability 1 / rank over so many tokens, and the draft one of
# another exponent.
ZIPF_TOKENS = 1000
ZIPF_EXPONENTS = (0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.5, 2.0)


def table1() -> list[Row]:
  """Operations and speed for c = 0 (Table 1)."""
  rows = []
  for printed in reference.table("leviathan_table1"):
    alpha, gamma = float(printed["alpha"]), int(printed["gamma"])
    rows.append(
        {
            "alpha": alpha,
            "gamma": gamma,
            "operations": float(theory.operations_growth(alpha, gamma, 0)),
            "paper_operations": float(printed["operations"]),
            "speed": float(theory.walltime_improvement(alpha, gamma, 0)),
            "paper_speed": float(printed["speed"]),
        }
    )
  return rows


def figure2() -> list[Row]:
  """Expected tokens per target call against alpha (Figure 2)."""
  return [
      {
          "gamma": gamma,
          "alpha": alpha,
          "tokens": float(theory.expected_tokens(alpha, gamma)),
      }
      for gamma, alpha in itertools.product(FIGURE2_GAMMAS, ALPHAS)
  ]


def figure3() -> list[Row]:
  """The gamma of the greatest speed against alpha and c (Figure 3)."""
  printed = {
      (float(row["c"]), float(alpha)): int(row[alpha])
      for row in reference.table("leviathan_figure3_best_gamma")
      for alpha in row.keys() - {"c"}
  }
  return [
      {
          "cost_coefficient": cost,
          "alpha": alpha,
          "gamma": theory.best_gamma(alpha, cost),
          "paper_gamma": printed.get((cost, alpha)),
      }
      for cost, alpha in itertools.product(FIGURE3_COSTS, ALPHAS)
  ]


def figure4() -> list[Row]:
  """Speed and operations against alpha for c = 0 (Figure 4)."""
  return [
      {
          "gamma": gamma,
          "alpha": alpha,
          "speed": float(theory.walltime_improvement(alpha, gamma, 0)),
          "operations": float(theory.operations_growth(alpha, gamma, 0)),
      }
      for gamma, alpha in itertools.product(FIGURE4_GAMMAS, ALPHAS)
  ]


def table4() -> list[Row]:
  """Expected speed of the paper's twelve pairs (Table 4)."""
  rows = []
  for printed in reference.table("leviathan_table2_and_4"):
    alpha, cost = float(printed["alpha"]), float(printed["c"])
    speed = lambda half, alpha=alpha, cost=cost, gamma=int(printed["gamma"]): (
        float(theory.walltime_improvement(alpha + half, gamma, cost - half))
    )
    low, high = speed(-0.005), speed(0.005)
    expected = float(printed["expected_speed"])
    rows.append(
        {
            "task": printed["task"],
            "draft": printed["draft"],
            "temperature": float(printed["temperature"]),
            "gamma": int(printed["gamma"]),
            "alpha": alpha,
            "cost_coefficient": cost,
            "expected_speed": speed(0),
            "expected_low": low,
            "expected_high": high,
            "paper_expected_speed": expected,
            "agrees": low - 0.05 <= expected <= high + 0.05,
            "paper_measured_speed": float(printed["measured_speed"]),
        }
    )
  return rows


def rejection() -> list[Row]:
  """Acceptance of the paper's rule and of rejection sampling (A.2)."""
  ranks = np.arange(1, ZIPF_TOKENS + 1)
  law = lambda exponent: ranks**-exponent / (ranks**-exponent).sum()
  target = law(1.0)
  rows = []
  for exponent in ZIPF_EXPONENTS:
    draft = law(exponent)
    alpha = float(theory.acceptance_rate(target, draft))
    other = float(theory.rejection_sampling_acceptance(target, draft))
    rows.append(
        {
            "draft_exponent": exponent,
            "alpha": min(alpha, 1.0),
            "rejection_acceptance": min(other, 1.0),
        }
    )
  return rows


TABLES: dict[str, Callable[[], list[Row]]] = {
    "table1": table1,
    "figure2": figure2,
    "figure3": figure3,
    "figure4": figure4,
    "table4": table4,
    "rejection": rejection,
    "chen_table1": chen_theory.table1,
    "chen_figure1": chen_theory.figure1,
}


def csv_of(name: str) -> str:
  """A table as CSV, numbers to four digits."""
  rows = TABLES[name]()
  return to_csv(rows, list(rows[0]))


def table1_table() -> Table:
  """Table 1 for readers, the printed values beside ours."""
  return Table.of_rows(
      (
          ("alpha", "{alpha:g}"),
          ("gamma", "{gamma}"),
          ("operations|computed", "{operations:.2f}X"),
          ("operations|printed", "{paper_operations:.2f}X"),
          ("speed|computed", "{speed:.2f}X"),
          ("speed|printed", "{paper_speed:.2f}X"),
      ),
      table1(),
  )


def figure3_table() -> Table:
  """The grid of Figure 3, ours before the value read off the plot."""
  printed = [row for row in figure3() if row["paper_gamma"]]
  cell = lambda row: f"{row['gamma']} / {row['paper_gamma']}"
  of_cost = lambda cost: [r for r in printed if r["cost_coefficient"] == cost]
  alphas = [row["alpha"] for row in of_cost(FIGURE3_COSTS[0])]
  return Table.of(
      ",".join(["c", *(f"alpha {alpha:.2f}" for alpha in alphas)]),
      [[f"{cost:g}", *map(cell, of_cost(cost))] for cost in FIGURE3_COSTS],
  )


def table4_table() -> Table:
  """Table 4's expected speeds for readers."""
  return Table.of_rows(
      (
          ("task", "{task}"),
          ("draft", "{draft}"),
          ("T", "{temperature:g}"),
          ("gamma", "{gamma}"),
          ("alpha|printed", "{alpha:.2f}"),
          ("c|printed", "{cost_coefficient:.2f}"),
          ("expected|computed", "{expected_speed:.2f}X"),
          ("range|computed", "{expected_low:.2f} to {expected_high:.2f}"),
          ("expected|printed", "{paper_expected_speed:.1f}X"),
          ("agrees", lambda row: "yes" if row["agrees"] else "no"),
          ("measured speed|printed", "{paper_measured_speed:.1f}X"),
      ),
      table4(),
  )


def rejection_table() -> Table:
  """A.2 for readers."""
  return Table.of_rows(
      (
          ("s", "{draft_exponent:g}"),
          ("alpha|computed", "{alpha:.3f}"),
          ("rejection sampling|computed", "{rejection_acceptance:.3f}"),
      ),
      rejection(),
  )


def report() -> str:
  """The tables for readers, in Markdown."""
  sections = {
      "Table 1: operations and speed, c = 0": table1_table(),
      "Figure 3: best gamma; ours / reference, checked against the plot": (
          figure3_table()
      ),
      "Table 4: expected speed": table4_table(),
      (
          "A.2: acceptance against rejection sampling; target 1 / rank over"
          f" {ZIPF_TOKENS:,} tokens, draft 1 / rank^s"
      ): rejection_table(),
  }
  ours = "\n".join(
      f"### {title}\n\n{table.markdown()}" for title, table in sections.items()
  )
  return f"{ours}\n{chen_theory.report()}"

"""Times of Chen et al. 2023 from a model of time: their Table 1 and Figure 1.

Nothing here is measured. K drafted tokens (gamma) and their verification take
one loop, and a loop yields the tokens of Leviathan et al. 2023, equation 1. The
loop's time is modelled twice: as 14.1 ms + K 1.8 ms, from the latencies of both
models that the paper prints; and along the line of its Figure 1, which ends at
28.6 ms and so contains what verifying more tokens costs.

The paper prints no acceptance beside its times. Each benchmark's alpha comes
from one point of Figure 1, its acceptance rate at the largest K; what all
other points and Table 1 say was not used. Figure 1 has one curve for XSum, so
both samplings of Table 1 get one alpha. What is printed there was read off the
plot, so it is approximate.
"""

import functools

from spec_t5x import theory
from spec_t5x.report import reference
from spec_t5x.report.table import Table
from spec_t5x.report.tables import Row

# One token of the target and of the draft, 16 TPU v4.
TARGET_MILLISECONDS = 14.1
DRAFT_MILLISECONDS = 1.8
# The figure's first panel shows the time of so many tokens.
FIGURE_TOKENS = 128


@functools.cache
def _figure() -> dict[tuple[str, int], dict[str, str]]:
  """What was read off Figure 1, by benchmark and K."""
  return {
      (row["benchmark"], int(row["K"])): row
      for row in reference.table("chen_figure1")
  }


def _last_point(benchmark: str) -> tuple[int, dict[str, str]]:
  """The point of a benchmark at the largest K."""
  gamma = max(gamma for name, gamma in _figure() if name == benchmark)
  return gamma, _figure()[benchmark, gamma]


def alpha(benchmark: str) -> float:
  """The alpha whose acceptance rate at the largest K is the figure's.

  The paper's rate is of tokens that a loop yields, the target's own included,
  over K + 1.
  """
  gamma, point = _last_point(benchmark)
  tokens = float(point["acceptance"]) * (gamma + 1)
  return theory.alpha_of_tokens(tokens, gamma)


def _cost_coefficients(benchmark: str) -> dict[str, float]:
  """Time of a drafted token over one of the target's, in both models."""
  gamma, point = _last_point(benchmark)
  growth = float(point["loop_milliseconds"]) / TARGET_MILLISECONDS - 1
  return {
      "latencies": DRAFT_MILLISECONDS / TARGET_MILLISECONDS,
      "figure": growth / gamma,
  }


def _speeds(benchmark: str, gamma: int) -> dict[str, float]:
  return {
      model: float(theory.walltime_improvement(alpha(benchmark), gamma, cost))
      for model, cost in _cost_coefficients(benchmark).items()
  }


def table1() -> list[Row]:
  """Speeds of the paper's Table 1."""
  rows = []
  for printed in reference.table("chen_table1"):
    benchmark, gamma = printed["benchmark"], int(printed["K"])
    speeds = _speeds(benchmark, gamma)
    speed = float(printed["printed_speedup"])
    milliseconds = float(printed["speculative_ms_per_token"])
    rows.append(
        {
            "benchmark": benchmark,
            "sampling": printed["sampling"],
            "gamma": gamma,
            "alpha": alpha(benchmark),
            "tokens": float(theory.expected_tokens(alpha(benchmark), gamma)),
            "predicted_speed_latencies": speeds["latencies"],
            "predicted_speed_figure": speeds["figure"],
            "paper_speed": speed,
            "paper_speed_from_times": TARGET_MILLISECONDS / milliseconds,
            "error_latencies": speeds["latencies"] / speed - 1,
            "error_figure": speeds["figure"] / speed - 1,
        }
    )
  return rows


def figure1() -> list[Row]:
  """The three panels of Figure 1 against K."""
  rows = []
  for benchmark in dict.fromkeys(name for name, _ in _figure()):
    last, _ = _last_point(benchmark)
    costs = _cost_coefficients(benchmark)
    for gamma in range(last + 1):
      speeds = _speeds(benchmark, gamma)
      tokens = theory.expected_tokens(alpha(benchmark), gamma)
      printed = _figure().get((benchmark, gamma), {})
      read = lambda key, row=printed: float(row[key]) if row.get(key) else None
      rows.append(
          {"benchmark": benchmark, "gamma": gamma}
          | {
              f"predicted_milliseconds_{model}": (
                  FIGURE_TOKENS * TARGET_MILLISECONDS / speed
              )
              for model, speed in speeds.items()
          }
          | {"predicted_acceptance": float(tokens / (gamma + 1))}
          | {
              f"predicted_loop_{model}": (
                  TARGET_MILLISECONDS * (1 + cost * gamma)
              )
              for model, cost in costs.items()
          }
          | {
              "paper_milliseconds": read("milliseconds_128_tokens"),
              "paper_acceptance": read("acceptance"),
              "paper_loop": read("loop_milliseconds"),
          }
      )
  return rows


def table1_table() -> Table:
  """Table 1 for readers."""
  return Table.of_rows(
      (
          ("benchmark", "{benchmark}"),
          ("sampling", "{sampling}"),
          ("K", "{gamma}"),
          ("alpha|computed", "{alpha:.3f}"),  # noqa: RUF027
          ("tokens a loop|predicted", "{tokens:.2f}"),
          (
              "speed with the latencies|predicted",
              "{predicted_speed_latencies:.2f}x",
          ),
          ("off by|computed", "{error_latencies:+.0%}"),
          (
              "speed with Figure 1's loop|predicted",
              "{predicted_speed_figure:.2f}x",
          ),
          ("off by|computed", "{error_figure:+.0%}"),
          ("speed|printed", "{paper_speed:.2f}x"),
          ("14.1 ms over its time|computed", "{paper_speed_from_times:.2f}x"),
      ),
      table1(),
  )


def figure1_table() -> Table:
  """The points of Figure 1 that were read off, for readers."""
  time = f"ms of {FIGURE_TOKENS} tokens with the latencies|predicted"
  return Table.of_rows(
      (
          ("benchmark", "{benchmark}"),
          ("K", "{gamma}"),
          (time, "{predicted_milliseconds_latencies:.0f}"),
          (
              "with Figure 1's loop|predicted",
              "{predicted_milliseconds_figure:.0f}",
          ),
          ("ms|printed", "{paper_milliseconds:.0f}"),
          ("acceptance|predicted", "{predicted_acceptance:.2f}"),
          ("acceptance|printed", "{paper_acceptance:.2f}"),
      ),
      [row for row in figure1() if row["paper_milliseconds"]],
  )


def _times(benchmark: str) -> list[float]:
  """Milliseconds by K in the model of Figure 1's loop."""
  return [
      row["predicted_milliseconds_figure"]
      for row in figure1()
      if row["benchmark"] == benchmark
  ]


TABLE_NOTE = (
    "A model of time, not measured. Alpha is from the last point of Figure 1"
    f" alone. A loop takes {TARGET_MILLISECONDS} ms + K {DRAFT_MILLISECONDS} ms"
    " ('the latencies'), or what Figure 1 shows at its largest K, and in"
    " proportion before. The printed 1.92x of XSum's nucleus is not"
    f" {TARGET_MILLISECONDS} ms over the time printed beside it."
)


def figure_note() -> str:
  """What the model says of Figure 1, and what it does not."""
  xsum, code = _times("XSum"), _times("HumanEval")
  best = lambda times: times.index(min(times))
  # The text of the paper says that XSum is fastest here.
  above = xsum[3] / min(xsum) - 1
  return (
      "A model of time, not measured. With Figure 1's loop it is fastest at K ="
      f" {best(xsum)} for XSum and {best(code)} for HumanEval, of 0 to 7. The"
      f" paper's XSum is fastest at 3, where the model is {above:.0%} above its"
      " least time."
  )


def report() -> str:
  """Both tables for readers, in Markdown, with what they are."""
  return (
      "### Chen et al. 2023, Table 1: speeds by a model of time\n\n"
      f"{TABLE_NOTE}\n\n{table1_table().markdown()}\n"
      "### Chen et al. 2023, Figure 1: the points read off\n\n"
      f"{figure_note()}\n\n{figure1_table().markdown()}"
  )

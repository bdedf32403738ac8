"""One decode, iteration by iteration, in colours.

As in figure 1 of Leviathan et al. 2023: green tokens were drafted and
accepted, red ones drafted and rejected, blue ones are the target's own.
"""

import dataclasses
import io
import itertools
import os
import pathlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import jax
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from spec_t5x import atomic, decoding, processes
from spec_t5x.decoder import Decoder

STYLES = {
    "accepted": "green",
    "rejected": "red strike",
    "target": "bright_blue",
    "untested": "dim",
}

_EXPORT_WIDTH = 100
_TITLE = "Speculative decoding"
_PAGE = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{_TITLE}</title>
<style>
{{stylesheet}}
body {{{{ color: {{foreground}}; background-color: {{background}}; }}}}
</style>
</head>
<body>
<pre><code>{{code}}</code></pre>
</body>
</html>
"""


class Spelling(Protocol):
  """What spells tokens: a `Vocabulary`, or pieces noted down."""

  def piece(self, token: int) -> str:
    """Returns a token as it stands in the middle of a text."""
    ...


class Segment(NamedTuple):
  """Consecutive tokens of one fate.

  Attributes:
    kind: 'accepted', 'rejected' and 'untested' tokens were drafted, 'target'
      ones the target chose. Accepted and target tokens make up the text.
    tokens: at least one.
  """

  kind: str
  tokens: tuple[int, ...]


def trace(
    decoder: Decoder, entry: str | Sequence[int], example_id: int = 0
) -> list[list[Segment]]:
  """Decodes one input again, stopping after each iteration.

  Args:
    decoder: decodes it.
    entry: a text, or token ids.
    example_id: fixes the random numbers, together with the decoder's seed.

  Returns:
    The segments of each iteration, in the order of the text. With
    `num_decodes` > 1 they are of the first decode drawn.

  Raises:
    ValueError: the input is malformed.
    FloatingPointError: a model's logits are not finite.
  """
  request = decoder.prepare([entry], example_ids=[example_id])
  settings = dataclasses.replace(request.settings, num_decodes=1)
  rows = jax.tree.map(lambda x: x[:1], request.rows)
  models, weights = decoder.models, decoder.weights
  contexts = jax.jit(decoding.start, static_argnums=0)(
      models, weights, request.ids
  )
  arguments = (models, settings, weights, contexts, rows)
  state = jax.jit(decoding.prefill, static_argnums=(0, 1))(*arguments)
  iterate = jax.jit(decoding.iterate, static_argnums=(0, 1))
  after, iterations = _visible(state), []
  while not after.finished.all():
    state, proposal = iterate(*arguments, state)
    before, after = after, _visible(state)
    drafted = processes.fetch(proposal._replace(probs=None))
    iterations.append(_segments(before, after, drafted))
  if not after.finite.all():
    raise FloatingPointError("The logits of a model are not finite.")
  return iterations


def _visible(state: decoding.State) -> decoding.State:
  """Copies a state to the host, but for the caches."""
  return processes.fetch(state._replace(target_cache=(), draft_cache=()))


def _segments(before, after, proposal) -> list[Segment]:
  """Returns what one iteration did, by the counts that it added."""
  added = lambda counts: int((counts(after) - counts(before)).sum())
  accepted = added(lambda state: state.counts.accepted)
  tested = added(lambda state: state.counts.tested)
  emitted = after.tokens[0, before.index[0] + 1 : after.index[0] + 1]
  drafted = proposal.tokens[0]
  if proposal.num_drafted is not None:
    drafted = drafted[: proposal.num_drafted[0]]
  # Drafted tokens behind the end of the text mean nothing.
  untested = () if after.finished[0] else drafted[max(tested, accepted) :]
  segments = (
      ("accepted", emitted[:accepted]),
      ("rejected", drafted[accepted:tested]),
      ("target", emitted[accepted:]),
      ("untested", untested),
  )
  return [
      Segment(kind, tuple(map(int, tokens)))
      for kind, tokens in segments
      if len(tokens)
  ]


def spelt(segment: Segment, spelling: Spelling) -> dict[str, Any]:
  """A segment for JSON, with the pieces of its tokens."""
  pieces = [spelling.piece(token) for token in segment.tokens]
  return {**segment._asdict(), "pieces": pieces}


def render(
    iterations: Sequence[Sequence[Segment]],
    spelling: Spelling | None,
    title: str,
) -> RenderableType:
  """Returns a trace for a terminal, one line per iteration.

  Args:
    iterations: as returned by `trace`.
    spelling: spells the tokens; None shows their ids.
    title: put above.
  """
  table = Table(box=None, header_style="dim")
  table.add_column("iteration", justify="right", style="dim")
  table.add_column("accepted", justify="right", style="dim")
  table.add_column("text")
  table.add_column("untested", style=STYLES["untested"])
  text = Text()
  for number, segments in enumerate(iterations, 1):
    spelt = {segment.kind: _spell(segment, spelling) for segment in segments}
    line = Text()
    for kind in ("accepted", "rejected", "target"):
      line.append(spelt.get(kind, ""), STYLES[kind])
    for kind in ("accepted", "target"):
      text.append(spelt.get(kind, ""), STYLES[kind])
    accepted = _count(segments, "accepted")
    table.add_row(str(number), str(accepted), line, spelt.get("untested"))
  return Group(Text(title, "bold"), table, text, _legend(iterations))


def export(
    shown: Iterable[RenderableType], path: str | os.PathLike[str]
) -> None:
  """Writes rendered traces to a picture or page.

  Args:
    shown: what `render` returned.
    path: a file that ends in .svg or .html.

  Raises:
    ValueError: it does not.
  """
  check_file(path)
  console = Console(
      record=True, file=io.StringIO(), width=_EXPORT_WIDTH, force_terminal=True
  )
  console.print(*shown, sep="\n")
  if pathlib.Path(path).suffix == ".svg":
    page = console.export_svg(title=_TITLE)
    # A viewer's own font does; a fetched one needs a network.
    page = re.sub(r"@font-face \{.*?\}\s*", "", page, flags=re.DOTALL)
  else:
    page = console.export_html(code_format=_PAGE)
  atomic.write_text(path, page)


def check_file(path: str | os.PathLike[str]) -> None:
  """Raises ValueError unless `export` can write to a file of this name."""
  if pathlib.Path(path).suffix not in (".svg", ".html"):
    raise ValueError(f"`trace_file` must end in .svg or .html. Got {path}.")


def _spell(segment: Segment, spelling: Spelling | None) -> str:
  if spelling is None:
    return "".join(f" {token}" for token in segment.tokens)
  return "".join(map(spelling.piece, segment.tokens))


def _count(segments: Iterable[Segment], kind: str) -> int:
  return sum(len(tokens) for own, tokens in segments if own == kind)


def _legend(iterations: Sequence[Sequence[Segment]]) -> Text:
  """Names the colours and counts the tokens."""
  segments = list(itertools.chain.from_iterable(iterations))
  counts = {kind: _count(segments, kind) for kind in STYLES}
  legend = Text()
  for kind, style in STYLES.items():
    legend.append(f"{counts[kind]} {kind}", style)
    legend.append(", ")
  tokens = counts["accepted"] + counts["target"]
  legend.append(f"{tokens} tokens in {len(iterations)} iterations")
  return legend

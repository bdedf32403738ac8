"""Tests of what is timed, and after what."""

from types import SimpleNamespace

import numpy as np
import pytest

from spec_t5x.experiments import timing


def fake(monkeypatch, emitted):
  """Notes decodes instead of running them; each takes as long as its number."""
  calls = []

  def timed_decode(decoder, request):
    del request
    calls.append(decoder)
    counts = SimpleNamespace(emitted=np.array([emitted[decoder]]))
    return timing.TimedDecode(0.0, len(calls), SimpleNamespace(counts=counts))

  monkeypatch.setattr(timing, "timed_decode", timed_decode)
  return calls


@pytest.mark.parametrize("plain_first", [True, False])
def test_each_is_timed_after_an_untimed_decode_of_its_own(
    monkeypatch, plain_first
):
  calls = fake(monkeypatch, {"plain": 5, "speculative": 5})
  pair = timing.timed_pair(("plain", None), ("speculative", None), plain_first)
  order = ["plain", "speculative"] if plain_first else ["speculative", "plain"]
  assert calls == [order[0], order[0], order[1], order[1]]
  seconds = {which: pair._asdict()[which].decode_seconds for which in order}
  assert seconds == {order[0]: 2, order[1]: 4}


def test_other_numbers_of_tokens_are_refused(monkeypatch):
  fake(monkeypatch, {"plain": 5, "speculative": 6})
  with pytest.raises(RuntimeError, match=r"equal numbers.*\[\[5\], \[6\]\]"):
    timing.timed_pair(("plain", None), ("speculative", None), True)

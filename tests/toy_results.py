"""Runs as a sweep writes them, drawn from known laws: no model decodes.

A step of the target takes `STEP` seconds, one of a draft `COSTS[draft]` of
that, a call of gamma + 1 tokens `verify_ratio(gamma)` of it, the encoder
`ENCODE` of the target and a tenth more with a draft's. Drafted tokens are
accepted independently, with one rate per draft unless `rates` says otherwise.
"""

import itertools
import json

import numpy as np

from spec_t5x.experiments import cells
from spec_t5x.experiments.cells import CellStore
from spec_t5x.experiments.sweep_settings import Sweep
from spec_t5x.tpu import chips
from spec_t5x.tpu.counting import Work

STEP, ENCODE = 0.01, 0.02
PASSES = (1.0, 1.02, 0.98)
ALPHAS = {
    "small": 0.7,
    "small-distilled": 0.75,
    "base": 0.8,
    "unigram": 0.1,
    "bigram": 0.2,
    "trigram": 0.3,
}
COSTS = {
    "small": 0.05,
    "small-distilled": 0.05,
    "base": 0.2,
    "unigram": 0.001,
    "bigram": 0.002,
    "trigram": 0.003,
}
TOKENS = 30
# Texts of the target, and their score.
TEXTS, QUALITY = 60, 30.0


def verify_ratio(gamma):
  """v(gamma) of the target."""
  return 1 + 0.05 * gamma


def rate_of(draft, temperature, lenience=1.0):
  """Acceptance rate, greater for sharper laws and for less lenience."""
  rate = ALPHAS[draft] * (1 if temperature == 0 else 0.9)
  return rate + (1 - rate) * (1 - lenience) / 2


def write(results, *, run="toy", rates=None, **changes):
  """Writes a run; returns its directory.

  Args:
    results: the directory of results.
    run: its name.
    rates: draft and place in the block to acceptance rate, for decoding.
    **changes: fields of `Sweep`.
  """
  fields = dict(
      name="ende",
      task="ende",
      target="shipped:target",
      drafts={draft: f"shipped:{draft}" for draft in ALPHAS},
      leniences=(0.5, 0.1),
      gammas=(1, 3, 7),
      num_texts=40,
      passes=len(PASSES),
  )
  sweep = Sweep(**(fields | changes))
  directory = results / sweep.name / run
  store = CellStore(directory / "cells")
  rng = np.random.default_rng(0)
  _write_provenance(directory, sweep)
  for temperature in sweep.temperatures:
    _write_texts(store, cells.outputs_name(temperature), temperature, QUALITY)
  pairs = list(itertools.product(sweep.drafts, sweep.temperatures))
  for (draft, temperature), lenience in itertools.product(
      pairs, (1.0, *sweep.leniences)
  ):
    _write_alpha(store, rng, draft, temperature, lenience)
    _write_quality(store, sweep, draft, temperature, lenience)
  for draft in sweep.drafts:
    _write_cost(store, sweep, draft)
  for draft, temperature in pairs:
    _write_trace(store, sweep, draft, temperature)
    for gamma in sweep.gammas:
      _write_walltime(store, rng, sweep, draft, temperature, gamma, 1.0, rates)
    for lenience in sweep.leniences:
      about = (draft, temperature, sweep.middle_gamma, lenience)
      _write_walltime(store, rng, sweep, *about, rates)
  return directory


def _write_provenance(directory, sweep):
  record = {
      "settings": vars(sweep),
      "commit": "0" * 40,
      "dirty": False,
      "command": ["sweep.py", "--gin_file=configs/experiments/ende.gin"],
      "seed": 0,
      "dtype": "float32",
      "weights_sha256": {"target": "0" * 64},
      "data": {"task": sweep.task, "split": "test", "texts": 100},
      "versions": {"python": "3.11", "jax": "0.10.2"},
      "device": "2 cores, toy",
      "xla_flags": "",
      "started": "2026-01-01T00:00:00+00:00",
  }
  text = json.dumps(record, indent=2)
  (directory / "provenance.json").write_text(text)


def _write_texts(store, name, temperature, quality, **about):
  row = {
      "example": 0,
      "tokens": [5, 6, 1],
      "prediction": "ein Text",
      "reference": "ein Text",
  }
  about |= {
      "temperature": temperature,
      "texts": TEXTS,
      "tokens": TEXTS * TOKENS,
      "metric": "BLEU",
      "quality": quality,
  }
  store.write(name, about, [row])


def _write_quality(store, sweep, draft, temperature, lenience):
  difference = -10 * (1 - lenience)
  _write_texts(
      store,
      cells.quality_name(draft, temperature, lenience),
      temperature,
      QUALITY + difference,
      draft=draft,
      lenience=lenience,
      gamma=sweep.middle_gamma,
      identical=TEXTS if temperature == 0 and lenience == 1 else 2,
      difference=difference,
      difference_low=difference - temperature,
      difference_high=difference + temperature,
  )


def _write_alpha(store, rng, draft, temperature, lenience):
  rate = rate_of(draft, temperature, lenience)
  rows = []
  for number in range(TEXTS):
    if temperature:
      overlap = [rate] * TOKENS
    else:
      overlap = (rng.random(TOKENS) < rate).astype(float).tolist()
    rows.append({"example": number, "tokens": TOKENS, "overlap": overlap})
  about = {"draft": draft, "temperature": temperature, "lenience": lenience}
  store.write(cells.alpha_name(draft, temperature, lenience), about, rows)


def _write_cost(store, sweep, draft):
  blocks = [("draft", 1, COSTS[draft]), ("draft", 2, 1.5 * COSTS[draft])]
  blocks += [("target", 1, 1.0)]
  blocks += [("target", g + 1, verify_ratio(g)) for g in sweep.gammas]
  rows = [
      {"model": role, "block": block, "seconds": [ratio * STEP] * 3}
      for role, block, ratio in blocks
  ]
  about = {"draft": draft, "device": "2 cores, toy"}
  store.write(cells.cost_name(draft), about, rows)


def _write_trace(store, sweep, draft, temperature):
  segment = lambda kind, *tokens: {
      "kind": kind,
      "tokens": tokens,
      "pieces": [f" <{kind} & {token}>" for token in tokens],
  }
  about = {
      "draft": draft,
      "temperature": temperature,
      "gamma": sweep.middle_gamma,
      "example": 3,
      "source": "translate English to German: <b>Open</b> the file.",
  }
  rows = [
      {"segments": [segment("accepted", 5, 6, 7), segment("target", 8)]},
      {
          "segments": [
              segment("accepted", 9),
              segment("rejected", 10),
              segment("target", 11),
              segment("untested", 12),
          ]
      },
      {"segments": [segment("target", 1)]},
  ]
  store.write(cells.trace_name(draft, temperature), about, rows)


def decode(rng, gamma, rates, tokens=TOKENS):
  """Counts of one decoded text, as the loop makes them."""
  counts = {
      "accept_counts": [0] * (gamma + 1),
      "tested": [0] * gamma,
      "accepted": [0] * gamma,
      "overlap": [0.0] * gamma,
      "iterations": 0,
      "emitted": 0,
  }
  while counts["emitted"] < tokens:
    room = tokens - counts["emitted"]
    accepted = 0
    for place in range(min(gamma, room)):
      counts["tested"][place] += 1
      counts["overlap"][place] += rates[place]
      if rng.random() >= rates[place]:
        break
      counts["accepted"][place] += 1
      accepted += 1
    counts["accept_counts"][accepted] += 1
    counts["iterations"] += 1
    counts["emitted"] += min(accepted + 1, room)
  return counts


def _write_walltime(
    store, rng, sweep, draft, temperature, gamma, lenience, rates
):
  rate = rate_of(draft, temperature, lenience)
  of_place = rates or (lambda draft, place: rate)
  iteration = verify_ratio(gamma) + COSTS[draft] * (gamma + 0.5)
  rows = []
  for number in range(sweep.num_texts):
    counts = decode(rng, gamma, [of_place(draft, i) for i in range(gamma)])
    plain = {
        "accept_counts": [TOKENS],
        "iterations": TOKENS,
        "emitted": TOKENS,
        **dict.fromkeys(("tested", "accepted", "overlap"), []),
    }
    timed = lambda counts, encode, decode: {
        "prediction": "ein Text",
        "emitted": TOKENS,
        "counts": counts,
        "timed_iterations": counts["iterations"],
        "encode_seconds": [encode * factor for factor in PASSES],
        "decode_seconds": [decode * factor for factor in PASSES],
    }
    rows.append(
        {
            "example": number,
            "tokens": TOKENS,
            "plain": timed(plain, ENCODE, TOKENS * STEP),
            "speculative": timed(
                counts, 1.1 * ENCODE, counts["iterations"] * iteration * STEP
            ),
        }
    )
  about = {
      "draft": draft,
      "temperature": temperature,
      "gamma": gamma,
      "lenience": lenience,
      "device": "2 cores, toy",
  }
  name = cells.walltime_name(draft, temperature, gamma, lenience)
  store.write(name, about, rows)


# Times as long as a step that projects once.
REPROJECTING = {"once": 1.0, "as_written": 1.01, "every_step": 1.3}


def write_reprojection(results, *, hoisted=True):
  """Writes a run of `reprojection_run`; returns its directory.

  Args:
    results: the directory of results.
    hoisted: whether the compiler moved the projections out of the loop.
  """
  directory = results / "reprojection" / "toy"
  store = CellStore(directory / "cells")
  record = {"settings": {"task": "ende", "gamma": 3}, "device": "2 cores, toy"}
  (directory / "provenance.json").write_text(json.dumps(record))
  in_loop = {"once": 41, "as_written": 41 if hoisted else 49, "every_step": 49}
  store.write(
      "program",
      {"device": "2 cores, toy", "projections": 8},
      [
          {"projection": projection, "matmuls_in_loops": number}
          for projection, number in in_loop.items()
      ],
  )
  counts = decode(np.random.default_rng(0), 3, [0.8] * 3)
  for length in (64, 512):
    steps = [
        {
            "projection": projection,
            "model": role,
            "block": block,
            "seconds": [seconds * REPROJECTING[projection]] * 3,
        }
        for projection in ("once", "every_step")
        for role, block, seconds in (
            ("target", 1, STEP),
            ("target", 4, STEP * verify_ratio(3)),
            ("draft", 1, STEP / 20),
        )
    ]
    store.write(f"steps-n{length}", {"length": length}, steps)
    timed = lambda seconds, projection: {
        "counts": counts,
        "encode_seconds": [0.0] * 3,
        "decode_seconds": [seconds * REPROJECTING[projection]] * 3,
    }
    rows = [
        {
            projection: {
                "plain": timed(TOKENS * STEP, projection),
                "speculative": timed(TOKENS * STEP / 2, projection),
            }
            for projection in REPROJECTING
        }
    ]
    store.write(f"decode-n{length}", {"length": length, "gamma": 3}, rows)
  return directory


def write_work(results):
  """Writes a run of `tpu.reprojection`: a step takes one second, or 1.5."""
  directory = results / "reprojection" / "tpu"
  store = CellStore(directory / "cells")
  record = {"settings": {"slice": "v4-1"}}
  (directory / "provenance.json").write_text(json.dumps(record))
  second = int(chips.CHIPS["v4"].bandwidth)
  rows = [
      {"projection": projection, **Work(0, size, 0, 0)._asdict()}
      for projection, size in (
          ("once", second),
          ("every_step", 3 * second // 2),
      )
  ]
  store.write("work-n512", {"length": 512, "slice": "v4-1"}, rows)
  return directory

"""Tests of the training report."""

import json

from spec_t5x.report import training

CURVES = {
    "ende_base": [
        {"step": 10, "loss": 5.0, "held_out_loss": 5.5, "seconds": 60.0},
        {
            "step": 20,
            "loss": 4.0,
            "held_out_loss": 4.25,
            "bleu": 12.34,
            "looping": 0.78,
            "seconds": 5400.0,
        },
    ],
    "ende_small": [
        {"step": 7, "loss": 6.0, "held_out_loss": 6.5, "seconds": 36.0}
    ],
}
# Begun before starts were noted.
STARTS = [
    {
        "start_step": step,
        "commit": "0123456789abcdef",
        "dirty": dirty,
        "device": "2 cores",
    }
    for step, dirty in ((5, False), (8, True), (12, False))
]


def write(directory):
  (directory / "curves").mkdir()
  for run, curve in CURVES.items():
    text = "".join(json.dumps(row) + "\n" for row in curve)
    (directory / "curves" / f"{run}.jsonl").write_text(text)
  (directory / "provenance").mkdir()
  text = "".join(json.dumps(start) + "\n" for start in STARTS)
  (directory / "provenance" / "ende_base.jsonl").write_text(text)


def test_last_rows_and_their_recipes(tmp_path):
  write(tmp_path)
  training.build(tmp_path)
  assert (tmp_path / "training.csv").read_text().splitlines() == [
      "run,recipe,steps,loss,held_out_loss,bleu,looping,hours,starts,"
      "known_from_step,commits,devices",
      "ende_base,configs/experiments/train_ende_base.gin,20,4,4.25,12.34,0.78,"
      '1.5,3,5,"012345678, 012345678 with changes",2 cores',
      "ende_small,configs/experiments/train_ende_small.gin,7,6,6.5,,,0.01,,,,",
  ]
  text = (tmp_path / "training.md").read_text()
  assert (
      "| 20 | 4.000 | 4.250 | 12.3 | 0.8% | 1.50 | 3 starts, from step 5 on:"
      " 012345678, 012345678 with changes | 2 cores |"
  ) in text
  assert "| 7 | 6.000 | 6.500 |  |  | 0.01 | none was kept |  |" in text
  assert "\n\n\n" not in text


def test_same_curves_give_the_same_bytes(tmp_path):
  write(tmp_path)
  first = {path: path.read_bytes() for path in training.build(tmp_path)}
  assert {path.name for path in first} == {
      "training.csv",
      "training.md",
      "curves.png",
      "curves.svg",
  }
  again = {path: path.read_bytes() for path in training.build(tmp_path)}
  assert first == again


def test_nothing_without_curves(tmp_path):
  assert training.build(tmp_path / "missing") == []

"""The script that trains vocabularies reads files of texts, too."""

import pathlib
import subprocess
import sys

from spec_t5x.vocabulary import Vocabulary

ROOT = pathlib.Path(__file__).parents[1]


def test_pieces_are_those_of_the_texts(tmp_path):
  texts = tmp_path / "texts.txt"
  texts.write_text("zebras graze\nzebras sleep\n" * 50, "utf-8")
  output = tmp_path / "zebra.model"
  subprocess.run(
      [
          sys.executable,
          "scripts/build_vocabulary.py",
          f"--texts={texts}",
          "--size=272",
          f"--output={output}",
      ],
      cwd=ROOT,
      env={"PYTHONPATH": str(ROOT)},
      capture_output=True,
      check=True,
  )
  pieces = Vocabulary(output)
  assert (pieces.pad_id, pieces.eos_id, pieces.size) == (0, 1, 272)
  ids = pieces.encode("zebras sleep")
  assert pieces.decode(ids) == "zebras sleep"
  assert len(ids) < len("zebras sleep")

"""Tests of the roofline."""

import pytest

from spec_t5x.tpu import roofline
from spec_t5x.tpu.chips import Chip
from spec_t5x.tpu.counting import Work

CHIP = Chip("toy", memory=1e9, bandwidth=100.0, peak=1000.0, source="")


@pytest.mark.parametrize(
    ("work", "seconds"),
    [
        # 150 + 40 + 10 bytes at 100 a second; arithmetic takes 0.5 s.
        (Work(500, 150, 40, 10), 2.0),
        # The same bytes, arithmetic 3 s.
        (Work(3000, 150, 40, 10), 3.0),
    ],
)
def test_the_slower_side_counts(work, seconds):
  assert roofline.seconds(work, CHIP) == seconds

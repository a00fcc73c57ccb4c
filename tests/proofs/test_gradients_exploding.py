"""With too long a step the loss grows by orders of magnitude; with a shorter one it falls."""

from __future__ import annotations

from math import isfinite
from typing import Any


def test_the_loss_explodes_in_bad_and_falls_in_good(shown: Any) -> None:
    bad, good = (shown("gradients-exploding", section).train() for section in ("Bad", "Good"))
    assert not isfinite(bad[-1]) or bad[-1] > 1e3 * bad[0]
    assert good[-1] < 0.7 * good[0]

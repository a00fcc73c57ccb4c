"""A root at zero halves the scale again and again; with an eps inside it no step is skipped."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.parametrize(("section", "skipped", "scale"), [("Bad", 10, 65536 / 2**10), ("Good", 0, 65536)])
def test_steps_are_skipped_and_the_scale_falls(shown, section: str, skipped: int, scale: float) -> None:
    assert shown("scale-collapsing", section).train() == (skipped, scale)


def test_small_gradients_vanish_in_float16_once_the_scale_is_gone() -> None:
    gradient = 1e-8
    for scale, lost in ((65536.0, False), (1.0, True)):
        assert (torch.tensor(gradient * scale).half() == 0).item() is lost

"""backward of several values needs their weights."""

from __future__ import annotations

import pytest


def test_two_losses_have_no_gradient_of_their_own(shown) -> None:
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        shown("loss-not-scalar", "Bad").train()


def test_their_mean_has(shown) -> None:
    shown("loss-not-scalar", "Good").train()

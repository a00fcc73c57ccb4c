"""The state of an optimizer fits only groups of the same lengths."""

from __future__ import annotations

import pytest


def test_a_grown_model_refuses_the_old_state(shown) -> None:
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        shown("optimizer-state-mismatched", "Bad").resume()


def test_the_same_model_takes_it(shown) -> None:
    shown("optimizer-state-mismatched", "Good").resume()

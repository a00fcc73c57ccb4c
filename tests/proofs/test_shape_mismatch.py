"""A linear layer takes the features that it was made for."""

from __future__ import annotations

import pytest


def test_a_layer_of_another_size_than_its_input_raises_with_both(shown) -> None:
    with pytest.raises(RuntimeError, match=r"\(8x2704 and 3136x10\)"):
        shown("shape-mismatch", "Bad").train()


def test_a_layer_of_the_right_size_trains(shown) -> None:
    shown("shape-mismatch", "Good").train()

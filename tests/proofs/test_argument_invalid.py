"""A pair where a tensor belongs is refused at the call."""

from __future__ import annotations

import pytest


def test_a_pair_is_no_input_of_a_layer(shown) -> None:
    with pytest.raises(TypeError, match="must be Tensor, not tuple"):
        shown("argument-invalid", "Bad").train()


def test_the_first_of_the_pair_is(shown) -> None:
    shown("argument-invalid", "Good").train()

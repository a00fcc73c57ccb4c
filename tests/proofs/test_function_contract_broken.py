"""A gradient has the shape of its input."""

from __future__ import annotations

import pytest


def test_a_gradient_of_another_shape_is_refused(shown) -> None:
    with pytest.raises(RuntimeError, match="returned an invalid gradient at index 1"):
        shown("function-contract-broken", "Bad").train()


def test_one_that_is_summed_to_it_is_taken(shown) -> None:
    shown("function-contract-broken", "Good").train()

"""What is recomputed must save the same tensors."""

from __future__ import annotations

import pytest


def test_a_cache_makes_the_second_pass_differ(shown) -> None:
    with pytest.raises(RuntimeError, match=r"recompute|Recomputed|different number"):
        shown("recompute-differs", "Bad").train()


def test_a_pass_of_its_inputs_alone_is_the_same(shown) -> None:
    shown("recompute-differs", "Good").train()

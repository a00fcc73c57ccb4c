"""Attention refuses heads that do not divide its width."""

from __future__ import annotations

import pytest


def test_ten_features_do_not_go_into_three_heads(shown) -> None:
    with pytest.raises(AssertionError, match="embed_dim must be divisible by num_heads"):
        shown("module-invalid", "Bad").build()


def test_twelve_do(shown) -> None:
    shown("module-invalid", "Good").build()

"""A branch on a value cannot be traced into one graph."""

from __future__ import annotations

import pytest


def test_a_branch_on_a_value_is_refused(shown) -> None:
    with pytest.raises(Exception, match=r"data-dependent|Data-dependent"):
        shown("compile-failed", "Bad").train()


def test_torch_where_is_traced(shown) -> None:
    shown("compile-failed", "Good").train()

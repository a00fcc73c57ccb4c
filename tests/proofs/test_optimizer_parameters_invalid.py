"""A parameter may stand in one group only."""

from __future__ import annotations

import pytest


def test_a_parameter_in_two_groups_is_refused(shown) -> None:
    with pytest.raises(ValueError, match="appear in more than one parameter group"):
        shown("optimizer-parameters-invalid", "Bad").build()


def test_disjoint_groups_are_taken(shown) -> None:
    shown("optimizer-parameters-invalid", "Good").build()

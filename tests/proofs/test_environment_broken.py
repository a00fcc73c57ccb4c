"""A name that a new NumPy no longer has fails at the import."""

from __future__ import annotations

import numpy as np
import pytest


def test_a_name_that_numpy_2_took_away_ends_the_import(shown) -> None:
    with pytest.raises(ImportError, match="bool8"):
        shown("environment-broken", "Bad")


def test_the_name_that_stayed_means_the_same(shown) -> None:
    assert shown("environment-broken", "Good").is_flag(np.bool_(True))

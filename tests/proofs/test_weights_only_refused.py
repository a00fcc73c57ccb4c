"""A class beside the tensors is refused by name; plain values are not."""

from __future__ import annotations

import pickle

import pytest


def test_a_namespace_is_refused_by_name(shown) -> None:
    with pytest.raises(pickle.UnpicklingError, match=r"argparse\.Namespace"):
        shown("weights-only-refused", "Bad").save_and_load()


def test_its_values_are_read(shown) -> None:
    shown("weights-only-refused", "Good").save_and_load()

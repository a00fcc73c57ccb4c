"""A device that is not there is refused, with or without a GPU in the machine."""

from __future__ import annotations

import pytest


def test_device_number_99_is_refused(shown) -> None:
    with pytest.raises((AssertionError, RuntimeError), match=r"CUDA|NVIDIA|invalid device ordinal"):
        shown("device-unavailable", "Bad").build()


def test_the_device_of_the_machine_is_taken(shown) -> None:
    shown("device-unavailable", "Good").build()

"""A function that returns nothing on one path gives None to backward."""

from __future__ import annotations

import pytest


def test_none_has_no_backward(shown) -> None:
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'backward'"):
        shown("attribute-missing", "Bad").loss_of(__import__("torch").ones(1), None).backward()


def test_a_loss_on_every_path_has_one(shown) -> None:
    shown("attribute-missing", "Good").loss_of(__import__("torch").ones(1, requires_grad=True), None).backward()

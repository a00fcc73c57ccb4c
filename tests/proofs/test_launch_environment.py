"""A process that trains alone and believes in four reads a quarter of the data."""

from __future__ import annotations

import os
from typing import Any

import pytest


@pytest.mark.parametrize(("section", "seen"), [("Bad", 16), ("Good", 64)])
def test_the_share_of_the_data_is_that_of_the_environment(
    shown: Any, monkeypatch: pytest.MonkeyPatch, section: str, seen: int
) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    assert shown("launch-environment", section).main() == seen

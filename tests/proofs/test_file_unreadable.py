"""A path that is not there raises with its name."""

from __future__ import annotations

import pytest


def test_a_file_that_is_not_there_raises(shown) -> None:
    with pytest.raises(FileNotFoundError, match=r"runs/best/model.pt"):
        shown("file-unreadable", "Bad").resume()


def test_a_start_without_a_checkpoint_is_one(shown) -> None:
    shown("file-unreadable", "Good").resume()

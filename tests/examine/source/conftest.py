"""Scripts from a few lines of text."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

from torchtriage.examine.source.script import Script

Reads = Callable[[str], Script]


@pytest.fixture
def reads() -> Reads:
    """The script that a dedented TEXT is."""

    def read(text: str) -> Script:
        return Script("train.py", dedent(text).encode())

    return read

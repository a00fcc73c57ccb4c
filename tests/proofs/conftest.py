"""The code that the pages show, ready to run."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from torchtriage.catalog import page, walk

Shown = Callable[[str, str], SimpleNamespace]


@pytest.fixture
def shown() -> Shown:
    """What the Bad or Good block of a page defines, by name: shown("graph-retained", "Bad").train(...)."""

    def run(slug: str, section: str) -> SimpleNamespace:
        names: dict[str, object] = {"__name__": section}
        exec(compile(page.read(walk.pages()[slug]).snippet(section), f"{slug}.md", "exec"), names)
        return SimpleNamespace(**names)

    return run

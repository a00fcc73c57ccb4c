"""The code that the pages show, ready to run."""

from __future__ import annotations

import json
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pair
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


Ranks = Callable[..., dict[str, list[Any]]]


@pytest.fixture
def ranks(tmp_path: Path) -> Ranks:
    """What a piece of code leaves in `result` on two ranks (gloo, CPU), by section and rank: ranks(slug, body).

    The body sees shown (what the snippet defines), defined (its globals), rank, section, folder, dist and torch.
    """

    def run(slug: str, body: str, sections: tuple[str, ...] = ("Bad", "Good")) -> dict[str, list[Any]]:
        started = [_start(slug, section, rank, body, tmp_path) for section in sections for rank in (0, 1)]
        for process in started:
            process.join(timeout=240)
        said = "".join(path.read_text() for path in sorted(tmp_path.glob("*.err")))
        assert {process.exitcode for process in started} == {0}, said
        return {s: [json.loads((tmp_path / f"{s}{rank}.json").read_text()) for rank in (0, 1)] for s in sections}

    return run


def _start(slug: str, section: str, rank: int, body: str, folder: Path) -> BaseProcess:
    given = {"rank": rank, "section": section, "body": body, "folder": str(folder)}
    given["snippet"] = page.read(walk.pages()[slug]).snippet(section)
    given |= {"store": (folder / f"{section}.store").as_uri(), "out": str(folder / f"{section}{rank}.json")}
    return pair.start(given, folder / f"{section}{rank}.err")

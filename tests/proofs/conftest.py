"""The code that the pages show, ready to run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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

# What each process runs: rank, snippets and body come as JSON; what the body leaves in `result` goes back as JSON.
_RANK = """
import datetime, json, sys, types
import torch
import torch.distributed as dist

given = json.load(sys.stdin)
torch.set_num_threads(1)
dist.init_process_group(
    "gloo", init_method=given["store"], rank=given["rank"], world_size=2, timeout=datetime.timedelta(seconds=60)
)
dist.barrier()  # nobody leaves before all have come
names = {"dist": dist, "torch": torch, "rank": given["rank"], "section": given["section"], "folder": given["folder"]}
snippet = {"__name__": given["section"]}
exec(compile(given["snippet"], given["section"], "exec"), snippet)
names["shown"] = types.SimpleNamespace(**snippet)
names["defined"] = snippet
exec(compile(given["body"], "body", "exec"), names)
with open(given["out"], "w") as file:
    json.dump(names["result"], file)
dist.destroy_process_group()
"""


@pytest.fixture
def ranks(tmp_path: Path) -> Ranks:
    """What a piece of code leaves in `result` on two ranks (gloo, CPU), by section and rank: ranks(slug, body).

    The body sees shown (what the snippet defines), defined (its globals), rank, section, folder, dist and torch.
    """

    def run(slug: str, body: str, sections: tuple[str, ...] = ("Bad", "Good")) -> dict[str, list[Any]]:
        started = [_start(slug, section, rank, body, tmp_path) for section in sections for rank in (0, 1)]
        codes = [process.wait(timeout=240) for process in started]
        said = "".join(path.read_text() for path in sorted(tmp_path.glob("*.err")))
        assert set(codes) == {0}, said
        return {s: [json.loads((tmp_path / f"{s}{rank}.json").read_text()) for rank in (0, 1)] for s in sections}

    return run


def _start(slug: str, section: str, rank: int, body: str, folder: Path) -> subprocess.Popen[bytes]:
    given = {"rank": rank, "section": section, "body": body, "folder": str(folder)}
    given["snippet"] = page.read(walk.pages()[slug]).snippet(section)
    given |= {"store": (folder / f"{section}.store").as_uri(), "out": str(folder / f"{section}{rank}.json")}
    asked = folder / f"{section}{rank}.in"
    asked.write_text(json.dumps(given))
    with asked.open() as source, (folder / f"{section}{rank}.err").open("w") as errors:
        return subprocess.Popen([sys.executable, "-c", _RANK], stdin=source, stdout=errors, stderr=errors)

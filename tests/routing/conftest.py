"""The scenarios of all rooms and of the station itself, and the source documents' tables."""

from __future__ import annotations

import tomllib
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

import torchtriage

SENTENCES = (
    "GPU utilization is low.",
    "The loader has 4 workers.",
    "We train a ResNet on ImageNet.",
    "It began after the upgrade to CUDA 12.",
)

PACKAGE = Path(torchtriage.__file__).parent
SEEDS = tomllib.loads((Path(__file__).parent / "seeds.toml").read_text(encoding="utf-8"))["row"]


@cache  # each collecting of a file asks for them
def scenarios() -> list[dict[str, Any]]:
    """Every row that is held to its route, of every scenarios.toml; kind is "plan" where it is not said."""
    rows = []
    for path in sorted(PACKAGE.rglob("scenarios.toml")):
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        rows += [
            {"kind": "plan", "room": path.parent.name, **row}
            for part in ("utterance", "scenario")
            for row in table.get(part, [])
        ]
    return rows


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`scenario` runs a test over all scenarios; `seed` over all queries of the source documents' tables.

    `reordered`: over a report of four lines, and each other order of them.
    """
    if "reordered" in metafunc.fixturenames:
        orders = list(permutations(SENTENCES))
        texts = [("\n".join(SENTENCES), "\n".join(lines)) for lines in orders]
        metafunc.parametrize("reordered", texts, ids=[" ".join(line[0] for line in lines) for lines in orders])
    if "scenario" in metafunc.fixturenames:
        rows = scenarios()
        metafunc.parametrize("scenario", rows, ids=[f"{row['room']}: {row['query'][:40]}" for row in rows])
    if "seed" in metafunc.fixturenames:
        rows = [(query, tuple(row["route"])) for row in SEEDS for query in row["queries"]]
        metafunc.parametrize("seed", rows, ids=[query[:40] for query, _ in rows])


@pytest.fixture(scope="session")
def all_scenarios() -> list[dict[str, Any]]:
    return scenarios()

"""Where scenarios, labelled answers and artefacts are: in the rooms of a checkout, or in what was installed.

The rooms' scenarios.toml are no part of the package torchtriage: an agent under test must not read the answers. What
is built of this distribution has their tables `evaluation` in one file (build.py).
"""

from __future__ import annotations

import json
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from torchtriage_evals.labelled import Labelled
from torchtriage_evals.scenario import Scenario

HERE = Path(__file__).parent
ROOMS = HERE.parents[2] / "src/torchtriage"
BUILT = HERE / "scenarios.json"
ARTEFACTS = HERE / "artefacts"
FIRST = "\n[[evaluation]]\n"


def scenarios() -> tuple[Scenario, ...]:
    """All scenarios, in the order of their ids; raises ValueError for one that makes no sense or is there twice."""
    found = sorted(msgspec.convert(rows(), list[Scenario]), key=lambda each: each.id)
    twice = {one.id for one, other in pairwise(found) if one.id == other.id}
    if twice:
        raise ValueError(f"scenarios that are there twice: {', '.join(sorted(twice))}")
    return tuple(found)


def rows() -> list[dict[str, Any]]:
    """The scenarios as they are written: of the checkout that this file is in, else as they were built in."""
    if BUILT.is_file():
        built: list[dict[str, Any]] = json.loads(BUILT.read_bytes())
        return built
    return written(ROOMS)


def written(folder: Path) -> list[dict[str, Any]]:
    """The tables `evaluation` of every scenarios.toml under FOLDER; raises ValueError where there are none."""
    found = [row for path in sorted(folder.rglob("scenarios.toml")) for row in _table(path)]
    if not found:
        raise ValueError(f"no scenarios under {folder}: use a checkout of the repository, or what is built from one")
    return found


def _table(path: Path) -> list[dict[str, Any]]:
    """The tables `evaluation` of one file: they stand at its end, behind reports that take a hundred times as long."""
    _, head, text = path.read_text(encoding="utf-8").partition(FIRST)
    rows: list[dict[str, Any]] = tomllib.loads(head + text).get("evaluation", [])
    return rows


def labelled() -> tuple[Labelled, ...]:
    """The answers that people have labelled."""
    table = tomllib.loads((HERE / "labelled.toml").read_text(encoding="utf-8"))
    return tuple(msgspec.convert(table["answer"], list[Labelled]))


def artefact(name: str) -> Path:
    """The recorded file of that name; raises ValueError, with those that there are, where there is none."""
    there = {path.name: path for path in sorted(ARTEFACTS.iterdir())}
    if name not in there:
        raise ValueError(f"no artefact {name!r}; there are {', '.join(there)}")
    return there[name]

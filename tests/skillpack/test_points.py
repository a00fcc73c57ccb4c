"""What the source documents ask a specialist to answer, and where it is answered."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from torchtriage.interface.skillpack.pack import ROUTER, pack, skills

FILES = sorted((Path(__file__).parent / "points").glob("*.toml"))
PACK = pack()
NAMES = {name: name for name in skills()} | {"routing": ROUTER}
SHIPPED = re.compile(r"^(topics|faults)/")
POINTS = [(file.stem, point) for file in FILES for point in tomllib.loads(file.read_text())["points"]]


def section(skill: str, where: str) -> str:
    """What the pack has at WHERE, in lower case: "path#heading" in SKILL's folder, or in that of the skill named before."""
    path, _, heading = where.partition("#")
    first, _, inner = path.partition("/")
    skill, path = (NAMES[first], inner) if first in NAMES else (skill, path)
    text = PACK[f"{skill}/{SHIPPED.sub('references/', path)}"].lower()
    if not heading:
        return text
    level = next(line for line in text.splitlines() if line.startswith("#") and line.lstrip("# ") == heading.lower())
    marks = level.partition(" ")[0]
    rest = text.partition(f"{level}\n")[2].splitlines()
    ends = [
        number for number, line in enumerate(rest) if line.startswith("#") and len(line.partition(" ")[0]) <= len(marks)
    ]
    return "\n".join(rest[: ends[0] if ends else None])


@pytest.mark.parametrize(("skill", "point"), POINTS, ids=[f"{skill}-{point['id']}" for skill, point in POINTS])
def test_a_point_is_answered_where_the_table_says(skill: str, point: dict[str, object]) -> None:
    assert set(point) == {"id", "asks", "where", "words"}
    text = section(skill, str(point["where"]))
    words = point["words"]
    assert isinstance(words, list)
    assert words
    assert [word for word in words if word.lower() not in text] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_points_of_a_scenario_are_counted_through(file: Path) -> None:
    numbers: dict[str, list[int]] = {}
    for point in tomllib.loads(file.read_text())["points"]:
        name, _, number = point["id"].rpartition(".")
        numbers.setdefault(name, []).append(int(number))
    assert [name for name, each in numbers.items() if sorted(each) != list(range(1, len(each) + 1))] == []

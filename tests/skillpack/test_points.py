"""What the source documents ask a specialist to answer, and where it is answered."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from sheets import HEAD

from torchtriage.interface.skillpack.pack import ROUTER, skills

FILES = sorted((Path(__file__).parent / "points").glob("*.toml"))
POINTS = [(file.stem, point) for file in FILES for point in tomllib.loads(file.read_text())["points"]]


def section(skill: str, where: str) -> str:
    """The text at WHERE, "path#heading" below the skill's folder or "routing/path#heading", in lower case."""
    path, _, heading = where.partition("#")
    folder = skills()[ROUTER] if path.startswith("routing/") else skills()[skill]
    text = HEAD.sub("", (folder / path.removeprefix("routing/")).read_text(encoding="utf-8")).lower()
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

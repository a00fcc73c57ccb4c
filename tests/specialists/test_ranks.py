"""Planted jobs of several ranks and their healthy twins, each run to its end: what is found, on which rank and where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs import Server
from machine import Machine, skip_where_busy

from torchtriage import triage
from torchtriage.core.case import Case
from torchtriage.core.fault import Severity

CASES = Path(__file__).parent.parent / "cases" / "ranks"
SILENT = CASES.parent / "silent"  # the errors that TrainCheck's authors collected (OSDI 2025), by their names
EXPECT = re.compile(
    r"# expect: (?P<fault>[a-z0-9-]+)(?: step (?P<step>\d+))?(?: rank (?P<rank>\d+))?(?: module (?P<module>\S+))?"
)
HEAD = re.compile(r"^# (ranks|exits|limit|hang): (\d+)$", re.M)


@pytest.fixture(scope="module")
def jobs() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def expected(script: Path) -> dict[str, tuple[int, dict[str, str]]]:
    """By fault: the marked line, and what the mark says of step, rank and module."""
    marks = ((number, EXPECT.search(text)) for number, text in enumerate(script.read_text().splitlines(), start=1))
    return {
        mark["fault"]: (number, {name: value for name, value in mark.groupdict().items() if value and name != "fault"})
        for number, mark in marks
        if mark
    }


def judged(script: Path, jobs: Server, folder: Path) -> Case:
    head = {name: int(value) for name, value in HEAD.findall(script.read_text())}
    code = jobs.run(script, folder, ranks=head.get("ranks", 0), limit=head.get("limit", 60), hang=head.get("hang"))
    said = "\n".join(each.read_text() for each in sorted(folder.glob("stderr*.txt")))
    assert code == head.get("exits", 0) or ("hang" in head and expected(script)), said
    case = triage.judge(folder)
    assert not [each for each in case.inconclusive if "switched off" in each.why or "detector failed" in each.why]
    return case


@pytest.mark.parametrize("script", sorted([*CASES.glob("*.py"), *SILENT.glob("*.py")]), ids=lambda path: path.stem)
def test_what_is_planted_among_ranks_is_found_where_it_is_and_nothing_else(
    script: Path, jobs: Server, machine: Machine, tmp_path: Path
) -> None:
    marks = expected(script)

    def attempt(name: str) -> Case:
        case = judged(script, jobs, tmp_path / name)
        loud = {each.fault.slug: each for each in case.findings if each.fault.severity is not Severity.INFO}
        assert {slug: each.evidence[0].fact for slug, each in loud.items() if slug not in marks} == {}
        return case

    case = machine.until_told(attempt, marks)
    found = {each.fault.slug: [item.place for item in each.evidence] for each in case.findings}
    skip_where_busy(case, marks)
    assert set(marks) <= set(found)
    for slug, (line, fields) in marks.items():
        places = [place for place in found[slug] if (Path(place.path or "").name, place.line) == (script.name, line)]
        assert places or fields, found[slug]
        assert any({name: str(getattr(place, name)) for name in fields} == fields for place in found[slug])


def test_a_third_of_the_jobs_are_healthy_twins() -> None:
    scripts = list(CASES.glob("*.py"))
    healthy = [script for script in scripts if not expected(script)]
    assert 3 * len(healthy) >= len(scripts) > 0

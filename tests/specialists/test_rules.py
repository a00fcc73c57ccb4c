"""Every script in tests/cases/<specialist>: what is marked is found, and nothing else is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torchtriage import triage
from torchtriage.catalog.load import catalog
from torchtriage.examine.source.edits import changed
from torchtriage.examine.source.seen import look

CASES = Path(__file__).parents[1] / "cases"
ROOMS = sorted(path for path in CASES.iterdir() if path.name.replace("_", "-") in catalog().specialists)
FILES = [path for room in ROOMS for path in sorted(room.glob("*.py"))]
SCRIPTS = [pytest.param(path, id=f"{path.parent.name}/{path.stem}") for path in FILES]
MARK = b"\xef\xbb\xbf"
EXPECTED = re.compile(r"# expect: ([a-z0-9-]+)")


def marked(path: Path) -> set[tuple[int, str]]:
    lines = enumerate(path.read_text().splitlines(), start=1)
    return {(number, slug) for number, line in lines for slug in EXPECTED.findall(line)}


def is_edited(path: Path) -> bool:
    """Whether a fault is marked for which there is an edit: nothing else has any."""
    faults = (catalog().faults[slug] for _, slug in marked(path))
    return any(remedy.edit is not None for fault in faults for remedy in fault.remedies)


EDITED = [each for each in SCRIPTS if is_edited(each.values[0])]  # type: ignore[arg-type]


@pytest.mark.parametrize("path", SCRIPTS)
def test_what_is_marked_is_found_and_nothing_else(path: Path) -> None:
    case = triage.check([path])
    assert [outcome.why for outcome in case.inconclusive] == []
    found = {(finding.evidence[0].place.line, finding.fault.slug) for finding in case.findings}
    assert found == marked(path)


@pytest.mark.parametrize("path", EDITED)
def test_an_edit_is_the_same_whatever_the_bytes_of_the_file(path: Path) -> None:
    """A byte order mark, the line ends of Windows; in an encoding whose columns are no bytes there is none."""
    plain = path.read_bytes()
    named = b"# coding: latin-1\n" + plain.decode().encode("latin-1", "replace")
    made = after(path, plain)
    assert after(path, MARK + plain) == [MARK + each for each in made]
    assert [each.replace(b"\r\n", b"\n") for each in after(path, plain.replace(b"\n", b"\r\n"))] == made
    assert after(path, named) == []


def after(path: Path, data: bytes) -> list[bytes]:
    """DATA with the edits of one sighting, for every sighting that has some."""
    found = look(path.name, data, triage.detectors("rules")).evidence
    return [changed(data, each.edits) for each in found if each.edits]


def test_every_rule_has_a_case_that_it_finds() -> None:
    found = {slug for path in SCRIPTS for _, slug in marked(path.values[0])}  # type: ignore[arg-type]
    rules = {each.name.removeprefix("source/") for each in triage.detectors("rules")}
    assert rules == found


def test_every_room_with_rules_has_a_script_in_which_nothing_is_wrong_in_some_function() -> None:
    """Look-alikes stand beside the faults: each room has more functions and classes than marks."""
    for room in ROOMS:
        text = "".join(path.read_text() for path in room.glob("*.py"))
        assert len(re.findall(r"^(?:def|class) ", text, re.M)) > len(EXPECTED.findall(text)), room.name

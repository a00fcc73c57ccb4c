"""The two sides of a comparison: cases, or what a job left behind, which is read first."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.core.errors import TriageError
from torchtriage.core.plain import within
from torchtriage.examine.artefact.heads import is_case
from torchtriage.examine.artefact.kinds import ORDER
from torchtriage.examine.artefact.opened import is_url
from torchtriage.triage.reading import read

_HEAD = 4096


def sides(before: str, after: str) -> tuple[Case, Case]:
    """The cases of BEFORE and AFTER; raises TriageError where they are not of one kind."""
    one, two = given(before), given(after)
    kinds = [_kinds(each) for each in (one, two)]
    if all(kinds) and not kinds[0] & kinds[1]:
        first, later = (", ".join(kind for kind in ORDER if kind in each) for each in kinds)
        raise TriageError(
            f"before is of the kind {first}, after of the kind {later}: they have no figure in common",
            f"{before}, {after}",
            "Compare what is of one kind: two runs, traces with traces, checkpoints with checkpoints.",
        )
    return one, _keyed(before, after, one, two)


def _keyed(before: str, after: str, one: Case, two: Case) -> Case:
    """TWO with what differs between the keys of two checkpoints, where each side is the file or folder of one."""
    files = [
        [each.get("file") for each in within(side.measurements, "checkpoint", "checkpoints") or ()]
        for side in (one, two)
    ]
    if files != [[before], [after]]:
        return two
    keys = within(read([before, after]).measurements, "checkpoint", "differences")
    return replace(two, measurements={**two.measurements, "keys": keys}) if keys else two


def given(path: str) -> Case:
    """The case that PATH is or holds, else that of what it holds; raises TriageError where it is neither."""
    place = Path(path)
    if not is_url(path) and os.path.isfile(place / "case.json"):  # noqa: PTH113 - Path.is_file raises where it may not look
        return Case.load(place / "case.json")
    is_there = os.path.exists(path)  # noqa: PTH110
    if is_url(path) or (is_there and not (os.path.isfile(path) and is_case(_head(place)))):  # noqa: PTH113
        return read([path])
    return Case.load(place)


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD)
    except OSError as error:
        raise TriageError(f"cannot be read: {error.strerror}", str(path), "Make it readable.") from error


def _kinds(case: Case) -> set[str]:
    """What the figures of CASE were read from; nothing where there are none."""
    found = {kind for kind in ORDER if kind in case.measurements}
    is_run = "overhead" in case.measurements or (not found and "step_time" in case.measurements)
    return found | ({"run"} if is_run else set())

"""Puts the records of the legs beside each other: arithmetic, no judgement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchtriage.examine.trial.resume.record import Record
from torchtriage.examine.trial.resume.state import differences, distance
from torchtriage.examine.trial.resume.trial import Course, Repeat, Resumed, Unit

COMPARED = ("batch", "weights", "buffers", "loss", "lr")


def origin(
    stopped: Record, resumed: Record, all_stopped: Sequence[Record] = (), all_resumed: Sequence[Record] = ()
) -> tuple[dict[str, tuple[int, int]], int | None]:
    """The files that the resumed leg read of those that the stopped one wrote, and the unit with which it goes on.

    The unit is None where nothing was read and no weights tell it. What other ranks wrote or read counts where this
    one did not: they go in step.
    """
    written = stopped.written()
    for each in all_stopped:
        written = {**each.written(), **written}
    own = resumed.read() or [path for each in all_resumed for path in each.read()]
    read = {path: written[path] for path in own if path in written}
    if read:
        return read, max(unit for unit, _ in read.values())
    weights = resumed.units[0].told.get("weights") if resumed.units else None
    same = [each.number for each in stopped.units if each.number and each.told.get("weights") == weights]
    saved = {unit for unit, _ in written.values()}
    return read, next((unit for unit in same if unit in saved), same[0] if same else None)


def beside(
    stopped: Record, resumed: Record, whole: Record | None, others: tuple[Sequence[Record], Sequence[Record]] = ((), ())
) -> Resumed | None:
    """RESUMED beside STOPPED, from whose files it goes on, and WHOLE, which never stopped; None where nothing tells
    with which unit it goes on. OTHERS: the records of all ranks of the first two.
    """
    read, unit = origin(stopped, resumed, *others)
    before, after = stopped.state(unit) if unit is not None else None, resumed.state(0)
    if unit is None or before is None or after is None:
        return None
    parts, entries = differences(before, after, stopped.state(0))
    repeat = repeated(stopped, whole)
    reference = whole if whole is not None and repeat.apart is None else stopped
    course = _course(reference, resumed, unit, ends=reference is whole)
    return Resumed(
        rank=stopped.rank, unit=unit, turn=before.turn, parts=parts, entries=entries, course=course, repeat=repeat,
        before=reference.units[unit:], after=resumed.units, stood=stopped.units,
        files={path: turn for path, (_, turn) in read.items()},
        began=_began(stopped, stopped.units[unit].told.get("pass", 0) if unit < len(stopped.units) else 0),
        begins=_first(resumed), saved=stopped.marks("file"), alone=len(others[0]) < 2,
    )  # fmt: skip


def repeated(stopped: Record, whole: Record | None) -> Repeat:
    """Whether the same command did the same twice, up to the stop."""
    pairs = list(zip(stopped.units, whole.units if whole is not None else (), strict=False))
    for one, two in pairs:
        what = tuple(name for name in COMPARED if one.told.get(name) != two.told.get(name))
        if what:
            return Repeat(len(pairs), one.number, what, (one.told.get("loss"), two.told.get("loss")))
    return Repeat(len(pairs))


def _course(reference: Record, resumed: Record, unit: int, *, ends: bool) -> Course:
    apart: dict[str, int] = {}
    losses = None
    pairs = list(zip(reference.units[unit:], resumed.units, strict=False))
    for number, (one, two) in enumerate(pairs):
        for name in COMPARED:
            if name not in apart and not _same(one, two, name):
                apart[name] = number
                if name == "loss":
                    losses = (one.told["loss"], two.told["loss"])
    finished = ends and reference.ended and resumed.ended
    missing = len(reference.units) - unit - len(resumed.units) if finished else None
    last, end = (each.state("last") if finished else None for each in (reference, resumed))
    relative = distance(last, end) if last is not None and end is not None else None
    return Course(len(pairs), apart, missing, relative, losses)


def _same(one: Unit, two: Unit, name: str) -> bool:
    return repr(one.told.get(name)) == repr(two.told.get(name))


def _began(record: Record, number: Any) -> dict[str, str]:
    """The marks of the generators as the pass of that NUMBER over a loader began."""
    found: dict[str, str] = {}
    for event in record.events:
        if event["event"] == "pass" and event["number"] == number:
            found = event["rng"]
    return found


def _first(record: Record) -> dict[str, tuple[str, ...]]:
    """The marks of the generators as the passes before the first unit began."""
    found: dict[str, tuple[str, ...]] = {}
    for event in record.events:
        if event["event"] == "unit":
            break
        if event["event"] == "pass":
            for name, mark in event["rng"].items():
                found[name] = (*found.get(name, ()), mark)
    return found

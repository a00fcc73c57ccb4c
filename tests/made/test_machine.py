"""A test that is alone on the machine is alone, and a busy machine hides no false alarm and no miss."""

from __future__ import annotations

from fcntl import LOCK_NB, LOCK_SH, flock
from pathlib import Path

import pytest
from machine import Machine, busy, missed

from torchtriage.core.case import Case
from torchtriage.core.evidence import Inconclusive

HELD_UP = Case(
    outcomes=(Inconclusive("run/communication", "it waited", "Run it on a machine that has nothing to do."),)
)
UNSEEN = Case(outcomes=(Inconclusive("run/communication", "they send each other tensors", "Profile ten steps."),))


def test_others_wait_at_the_door_while_one_is_alone(tmp_path: Path) -> None:
    one = Machine(tmp_path)
    one.share()
    with (tmp_path / "room").open() as room, (tmp_path / "door").open() as door:
        flock(door, LOCK_SH | LOCK_NB)
        flock(room, LOCK_SH | LOCK_NB)
    with one.alone(), (tmp_path / "room").open() as room, (tmp_path / "door").open() as door:
        for each in (door, room):
            with pytest.raises(BlockingIOError):
                flock(each, LOCK_SH | LOCK_NB)
    with (tmp_path / "room").open() as room, (tmp_path / "door").open() as door:
        flock(door, LOCK_SH | LOCK_NB)
        flock(room, LOCK_SH | LOCK_NB)
    one.close()


@pytest.mark.parametrize(
    ("told", "attempts"),
    [
        ([Case()], 1),
        ([UNSEEN], 1),
        ([HELD_UP, UNSEEN], 2),
        ([HELD_UP] * 3, 3),
    ],
    ids=["missed", "not seen for another reason", "alone", "busy all the time"],
)
def test_what_a_busy_machine_hides_is_tried_again(told: list[Case], attempts: int, machine: Machine) -> None:
    names: list[str] = []
    case = machine.until_told(lambda name: (names.append(name), told[len(names) - 1])[1], {"communication-bound"})
    assert case is told[attempts - 1]
    assert len(set(names)) == attempts
    assert missed(case, {"communication-bound"})


def test_only_what_waits_for_a_free_machine_is_called_busy() -> None:
    assert busy(HELD_UP, {"communication-bound"}) == ["it waited"]
    assert busy(HELD_UP, {"straggler"}) == busy(UNSEEN, {"communication-bound"}) == []

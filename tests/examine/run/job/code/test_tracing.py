"""The line that changes something is found by following the user's lines, here those of this file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps

from torchtriage.examine.run.job.code.tracing import Follower, Visits


def alone(test: Callable[[], None]) -> Callable[[], None]:
    """TEST without the tracer of a coverage, which a fixture would take off too early: before it is paused."""

    @wraps(test)
    def follows() -> None:
        outer = sys.gettrace()
        sys.settrace(None)
        try:
            test()
        finally:
            sys.settrace(outer)

    return follows


def first_line() -> int:
    return sys._getframe(1).f_code.co_firstlineno


def halve(numbers: list[float]) -> None:
    factor = 0.5
    numbers[0] *= factor
    numbers.append(0.0)


@alone
def test_the_line_is_found_with_the_call_that_led_there() -> None:
    numbers = [1.0]
    follower = Follower(lambda: numbers != [1.0])
    halve(numbers)
    numbers.append(2.0)
    inner, outer = follower.stop()
    assert inner[1] == halve.__code__.co_firstlineno + 2
    assert outer[1] == first_line() + 4
    assert sys.gettrace() is None


@alone
def test_a_change_in_the_last_line_is_found_when_the_following_ends() -> None:
    numbers = [1.0]
    follower = Follower(lambda: len(numbers) > 1)
    numbers.append(2.0)
    assert [line for _, line in follower.stop()] == [first_line() + 4]


@alone
def test_nothing_is_found_where_nothing_changes() -> None:
    follower = Follower(lambda: False)
    halve([1.0])
    assert follower.stop() == []


@alone
def test_a_look_that_fails_ends_the_following_and_not_the_job() -> None:
    numbers: list[float] = []
    follower = Follower(lambda: bool(numbers[0]))
    halve([1.0])
    assert sys.gettrace() is None
    assert follower.found == []


@alone
def test_who_follows_the_lines_already_is_not_disturbed() -> None:
    debugger = lambda *_: None  # noqa: E731
    sys.settrace(debugger)
    follower = Follower(lambda: True)
    assert sys.gettrace() is debugger
    assert follower.stop() == []


def visited(count: int) -> tuple[int, list[int]]:
    """The first line of this function, and which of its last four lines are reached while a Visits looks."""
    frame = sys._getframe()
    first = frame.f_code.co_firstlineno
    visits = Visits([(frame, frozenset(range(first + 5, first + 9)))])
    if count > 1:
        halve([1.0])
    halve([2.0])
    return first, [line for _, line in visits.stop()]


@alone
def test_the_lines_that_are_reached_are_those_of_the_frame_and_not_of_what_it_calls() -> None:
    first, lines = visited(1)
    assert lines == [first + 5, first + 7, first + 8]
    assert sys.gettrace() is None


@alone
def test_no_line_is_reached_where_somebody_else_follows_them() -> None:
    debugger = lambda *_: None  # noqa: E731
    sys.settrace(debugger)
    assert visited(2)[1] == []
    assert sys.gettrace() is debugger

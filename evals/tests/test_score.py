"""What answers are worth."""

from __future__ import annotations

import pytest

from torchtriage_evals.scenario import Point, Scenario
from torchtriage_evals.score import Judged, mechanical, score

YES, NO, UNKNOWN = Judged(True), Judged(False), Judged(None, "no judge was named")
GOOD = (Point("a", "does a"), Point("b", "does b"))
HARM = Point("c", "does c", harmful=True)
ADVICE = Scenario("x", "x", "advice", "what?", points=(*GOOD, HARM))
ROUTED = Scenario("x", "x", "route", "what?", route=("debugging-techniques",), also=(("performance-profiling",),))
SOUND = Scenario("x", "x", "healthy", "look", program="any")
PROGRAM = "def f():\n    return 1\n"


@pytest.mark.parametrize(
    ("judged", "value"),
    [
        ((YES, YES, NO), 1.0),
        ((YES, NO, NO), 0.5),
        ((YES, YES, YES), 0.5),
        ((NO, NO, YES), -0.5),
        ((YES, UNKNOWN, NO), 1.0),
        ((UNKNOWN, UNKNOWN, YES), None),
        ((YES, YES, UNKNOWN), 1.0),
    ],
)
def test_points_count_and_harm_counts_against_them(judged: tuple[Judged, ...], value: float | None) -> None:
    found = score(ADVICE, "words", dict(zip("abc", judged, strict=True)))
    assert found.value == value
    assert sum(found.unscored.values()) == judged.count(UNKNOWN)


def test_a_pattern_decides_without_a_judge() -> None:
    points = (Point("sync", "calls synchronize", pattern=r"synchronize"), Point("b", "does b"))
    assert mechanical(points, "then torch.cuda.Synchronize()") == {"sync": Judged(True)}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("debugging-techniques", 1.0),
        ("performance-profiling", 1.0),
        ("debugging-techniques, performance-profiling", 0.0),
        ("question", 0.0),
    ],
)
def test_a_route_is_right_as_a_whole_or_not_at_all(line: str, value: float) -> None:
    assert score(ROUTED, f"ROUTE: {line}", {}).value == value


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("VERDICT: sound", 1.0),
        (f"```python\n{PROGRAM}```\nVERDICT: sound", 1.0),
        (f"```python\n{PROGRAM}```\nVERDICT: sound".replace("1", "2"), 0.5),
        (f"```python\n{PROGRAM}```\nVERDICT: faulty".replace("1", "2"), -0.5),
        ("VERDICT: faulty", 0.0),
        ("", 0.0),
    ],
)
def test_a_needless_fix_costs(answer: str, value: float) -> None:
    assert score(SOUND, answer, {}, before=PROGRAM).value == value


def test_parts_are_averaged() -> None:
    mixed = Scenario("x", "x", "mix", "what?", route=("debugging-techniques",), points=GOOD)
    found = score(mixed, "ROUTE: debugging-techniques", {"a": YES, "b": NO})
    assert (found.parts, found.value) == ({"route": 1.0, "points": 0.5}, 0.75)


def test_a_cause_is_one_label() -> None:
    one = Scenario("x", "x", "evidence", "what?", artefact="a", cause="nan-loss", labels=("nan-loss", "hang"))
    assert score(one, "CAUSE: nan-loss", {}).value == 1.0
    assert score(one, "CAUSE: nan-loss, hang", {}).value == 0.0
    assert score(one, "it is nan-loss", {}).value == 0.0


def test_a_program_that_could_not_be_judged_is_unscored() -> None:
    code = Scenario("x", "x", "code", "look", program="any")
    assert score(code, "", {}, Judged(None, "no torch")).value is None
    assert score(code, "", {}, YES).value == 1.0

"""What a scenario refuses."""

from __future__ import annotations

from typing import Any

import pytest

from torchtriage_evals.scenario import Point, Scenario

ROUTE: dict[str, Any] = {
    "id": "slow",
    "family": "slow",
    "kind": "route",
    "query": "slow",
    "route": ("performance-profiling",),
}
SAID = Point("measure", "measures before advising")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"id": "Slow!"}, "names with hyphens"),
        ({"query": " "}, "an empty query"),
        ({"route": ("profiling",)}, "no specialists: profiling"),
        ({"route": ()}, "needs route or question"),
        ({"question": True}, "not both"),
        ({"points": (SAID,)}, "has no points"),
        ({"kind": "scope"}, "needs refer_to"),
        ({"kind": "scope", "route": (), "refer_to": "cooking"}, "is none of"),
        ({"kind": "advice", "points": (Point("amp", "turns on AMP", harmful=True),)}, "only points are harmful"),
        ({"kind": "advice", "points": (SAID, SAID)}, "two points of one id"),
        ({"kind": "evidence", "artefact": "a.log", "cause": "x", "labels": ("y", "z")}, "not among its labels"),
        ({"kind": "trigger", "route": ()}, "needs triggers"),
        ({"pressures": ("time", "time")}, "a pressure twice"),
    ],
)
def test_a_scenario_that_makes_no_sense_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Scenario(**(ROUTE | changed))


def test_a_query_that_must_not_open_the_skill_is_a_scenario() -> None:
    assert Scenario("cook", "cook", "trigger", "how long do eggs boil?", triggers=False).triggers is False


@pytest.mark.parametrize(
    ("pattern", "said"),
    [("(", "no regular expression"), ("a*", "in an empty answer"), ("profil", "not found in the point's own text")],
)
def test_a_pattern_that_decides_nothing_is_refused(pattern: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Point("measure", "measures", pattern=pattern)

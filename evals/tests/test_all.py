"""Every scenario of the rooms can be answered fully, is not answered by silence, and is harmed by what harms."""

from __future__ import annotations

import pytest

from torchtriage_evals import answer as read
from torchtriage_evals import scripted, store
from torchtriage_evals.programs.program import program
from torchtriage_evals.prompt import Given, prompt
from torchtriage_evals.scenario import PRESSURES, Scenario
from torchtriage_evals.score import Judged, mechanical, score
from torchtriage_evals.source import Source

ALL = Source(store.scenarios(), (), store.ARTEFACTS)
ASKED = [one for one in ALL.scenarios if one.kind != "trigger"]


def worth(one: Scenario, answer: str, given: Given | None) -> float | None:
    """What ANSWER is worth to a judge that finds the words of a point."""
    said = {point.id: Judged(point.text in answer) for point in one.points} | mechanical(one.points, answer)
    before = given.text if given else ""
    mended = program(one.program).mended if one.kind == "code" else None
    ran = None if mended is None else Judged(read.program(answer, before) == mended)
    return score(one, answer, said, ran, before).value


@pytest.mark.parametrize("one", ASKED, ids=lambda one: one.id)
def test_a_perfect_answer_is_worth_one_silence_nothing_and_harm_no_more(one: Scenario) -> None:
    given = ALL.given(one)
    assert worth(one, scripted.perfect(one), given) == 1.0
    assert worth(one, "", given) == 0.0
    harmed = worth(one, scripted.harmful(one, given.text if given else ""), given)
    assert harmed is not None
    assert harmed <= 0.0
    if any(point.harmful for point in one.points):
        assert harmed < 0.0


@pytest.mark.parametrize("one", [one for one in ASKED if not one.points], ids=lambda one: one.id)
def test_a_query_gives_no_answer_away(one: Scenario) -> None:
    given = ALL.given(one)
    assert worth(one, prompt(one, None, given), given) in (0.0, 1.0 if one.kind == "healthy" else 0.0)


def test_no_two_scenarios_are_asked_in_the_same_words() -> None:
    asked = [prompt(one, mood, ALL.given(one)) for one in ALL.scenarios for mood in (None, *PRESSURES)]
    assert len(set(asked)) == len(asked)

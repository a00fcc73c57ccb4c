"""What is made of a judge's replies, and when a judge is believed."""

from __future__ import annotations

import json

import pytest

from torchtriage_evals.judge import LONGEST, UNQUOTED, UNREADABLE, agreement, decided, question
from torchtriage_evals.labelled import Labelled
from torchtriage_evals.score import Judged

ANSWER = "First measure\n  where the time goes: take a profile of ten steps."


@pytest.mark.parametrize(
    ("reply", "made", "why"),
    [
        ('{"made": true, "quote": "measure where the time goes"}', True, ""),
        ('Well. ```json\n{"made": true, "quote": "a profile  of ten\\nsteps"}\n```', True, ""),
        ('{"made": false, "quote": ""}', False, ""),
        ('{"made": false}', False, ""),
        ('{"made": true, "quote": "measures everything"}', None, UNQUOTED),
        ('{"made": true, "quote": ""}', None, UNQUOTED),
        ('{"made": true, "quote": "the"}', None, UNQUOTED),
        ('{"made": true}', None, UNQUOTED),
        ('{"made": "yes", "quote": "take a profile"}', None, UNREADABLE),
        ('{"made": 1, "quote": "take a profile"}', None, UNREADABLE),
        ("YES", None, UNREADABLE),
        ("", None, UNREADABLE),
        ("[1]", None, UNREADABLE),
        ("{" * 10_000, None, UNREADABLE),
    ],
)
def test_a_reply_counts_only_with_a_quote_that_stands_in_the_answer(reply: str, made: bool | None, why: str) -> None:
    found = decided(reply, ANSWER)
    assert (found.made, found.why) == (made, why)


def test_the_whole_of_a_long_answer_is_no_quote() -> None:
    long = "word " * LONGEST
    assert decided(json.dumps({"made": True, "quote": long}), long).made is None


def test_the_judge_is_told_no_arm_and_one_point() -> None:
    asked = question("Why is it slow?", ANSWER, "measures first").lower()
    assert "measures first" in asked
    assert not {"red", "green", "placebo", "skill", "arm"} & set(asked.replace(".", " ").split())


def labelled(made: int, not_made: int, decoys: int) -> list[Labelled]:
    return [
        Labelled(str(n), "q", "p", "a", made=n < made, decoy=n >= made + not_made)
        for n in range(made + not_made + decoys)
    ]


def test_a_judge_that_agrees_is_accepted() -> None:
    found = agreement((one, Judged(one.made if one.id != "3" else False)) for one in labelled(10, 5, 10))
    assert found.accepted
    assert (found.answers, found.agreed, found.decoys, found.fooled) == (25, 24, 10, 0)
    assert found.alpha is not None
    assert 0.85 < found.alpha < 1


def test_a_judge_that_agrees_but_for_the_decoys_is_refused() -> None:
    found = agreement((one, Judged(one.made or (one.decoy and int(one.id) % 4 == 0))) for one in labelled(30, 30, 10))
    assert found.alpha is not None
    assert found.alpha > 0.8
    assert found.fooled > 1
    assert not found.accepted


@pytest.mark.parametrize("said", [True, False, None])
def test_a_judge_that_always_says_the_same_is_refused(said: bool | None) -> None:
    assert not agreement((one, Judged(said)) for one in labelled(10, 5, 10)).accepted


def test_a_judge_of_chance_is_refused() -> None:
    found = agreement((one, Judged(int(one.id) % 2 == 0)) for one in labelled(12, 6, 12))
    assert found.alpha is not None
    assert abs(found.alpha) < 0.3
    assert not found.accepted

"""Six questions before an answer."""

from __future__ import annotations

import pytest

from torchtriage.core.plan import Plan, Question, Route, Stage, Step
from torchtriage.core.query import Query
from torchtriage.routing.listen import listen
from torchtriage.routing.order import order
from torchtriage.routing.selfcheck import check

PROFILE = Plan((Step("performance-profiling", Stage.DIAGNOSE, "measure"),))
AMP = Plan((Step("mixed-precision-and-optimization", Stage.TREAT, "cure", opens_on=("compute-bound",)),))
ASK = Question("What?", ("This",))


def failed(text: str, route: Route | None = None, draft: str = "") -> set[str]:
    query = listen(text) if text else Query("")
    return {each.name for each in check(query, route or order(query), draft) if not each.passed}


def test_there_are_six_questions_each_with_a_way_out() -> None:
    checks = check(listen("NaN"), PROFILE)
    assert len(checks) == 6
    assert all(each.question.endswith("?") and each.do for each in checks)


@pytest.mark.parametrize(
    ("text", "route", "draft", "names"),
    [
        ("training is slow", None, "", set()),
        ("", PROFILE, "", {"symptom-identified", "specialist-known", "not-ambiguous"}),
        ("loss is NaN", PROFILE, "", {"specialist-known"}),
        ("training is slow", AMP, "", {"specialist-known", "diagnosis-first"}),
        ("Fix my PyTorch training", PROFILE, "", {"symptom-identified", "specialist-known", "not-ambiguous"}),
        ("loss is NaN", ASK, "", {"not-ambiguous"}),
        ("Fix my PyTorch training", ASK, "", set()),
        ("CUDA out of memory", None, "Use a smaller batch.", {"no-direct-advice"}),
        ("CUDA out of memory", None, "Your senior is right.", {"pressure-resisted"}),
    ],
)
def test_a_check_fails_where_its_rule_is_broken(text: str, route: Route | None, draft: str, names: set[str]) -> None:
    assert failed(text, route, draft) == names

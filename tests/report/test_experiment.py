"""What an experiment has tried, in every report that people read."""

from __future__ import annotations

import re
from typing import Any

import pytest

from torchtriage.core.case import Case
from torchtriage.report import console, html, markdown
from torchtriage.report.experiment import tried

TOLD: dict[str, Any] = {
    "steps": 64,
    "branches": 14,
    "seconds": 9.5,
    "start": 2.302,
    "arms": [
        {"changes": {}, "tries": 5, "end": 3.1, "losses": []},
        {"changes": {"learning-rate": 0.1}, "tries": 5, "end": 0.41, "further": 1.42, "spread": [1.31, 1.53]},
        {
            "changes": {"learning-rate": 0.01},
            "tries": 5,
            "end": 0.2,
            "further": 2.0,
            "at_least": True,
            "spread": [2.0, 2.0],
        },
        {"changes": {"learning-rate": 1000.0}, "tries": 1, "end": None, "further": -2.0, "spread": None},
        {"changes": {"one-batch": 1.0, "learning-rate": 10.0}, "tries": 1, "end": 0.02, "further": 0.5, "spread": None},
    ],
    "without_result": [{"changes": {"dropout": 0.0}, "why": "its modules drop\nnothing out"}],
}
SAID = [
    "Tried from the first step: 14 trials of 64 steps each, in 9.5 s",
    "unchanged the loss goes from 2.3 to 3.1",
    "learning rate x 0.1 the loss goes from 2.3 to 0.41; further than unchanged by 142% (95 % interval 131% to 153%)",
    "learning rate x 0.01 the loss goes from 2.3 to 0.2; further than unchanged by 200% or more",
    "learning rate x 1000 not finite",
    "one batch only, learning rate x 10 the loss goes from 2.3 to 0.02",
    "no dropout no result: its modules drop nothing out",
]


def test_a_terminal_gets_a_line_for_each_change() -> None:
    words = " ".join(console.render(Case(measurements={"experiment": TOLD})).split())
    assert [said for said in SAID if said not in words] == []


def test_markdown_and_html_say_the_same() -> None:
    case = Case(measurements={"experiment": TOLD})
    for text in (markdown.render(case), re.sub(r"<[^>]+>", " ", html.render(case))):
        plain = " ".join(re.sub(r"[\\|]", " ", text).split())
        plain = plain.replace(" .", ".").replace("( ", "(").replace(" )", ")")
        assert [part for said in SAID[1:3] for part in said.split("; ") if part.split(" (")[0] not in plain] == []


@pytest.mark.parametrize(
    "told",
    [
        None,
        {},
        {"arms": "none"},
        {"arms": [], "without_result": []},
    ],
)
def test_without_a_trial_there_is_no_part(told: Any) -> None:
    assert tried({"experiment": told}) is None


@pytest.mark.parametrize(
    "told",
    [
        {"arms": [{}], "steps": "many"},
        {"arms": [{"changes": {"\x1b[31m": "much"}, "spread": [None, "x"], "further": 1}], "start": "x"},
        {"arms": [{"changes": []}], "without_result": [{"why": 3}, 4]},
    ],
)
def test_whatever_a_case_holds_it_is_inert_text(told: Any) -> None:
    found = tried({"experiment": told})
    assert found is not None
    assert "\x1b" not in " ".join(each for row in found.rows for each in row)

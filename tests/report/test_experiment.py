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
        {"name": "unchanged", "tries": 5, "end": 3.1, "losses": []},
        {"name": "learning rate x 0.1", "tries": 5, "end": 0.41, "further": 1.42, "spread": [1.31, 1.53]},
        {
            "name": "learning rate x 0.01",
            "tries": 5,
            "end": 0.2,
            "further": 2.0,
            "at_least": True,
            "spread": [2.0, 2.0],
        },
        {"name": "learning rate x 1000", "tries": 1, "end": None, "further": -2.0, "spread": None},
        {"name": "one batch only, learning rate x 10", "tries": 1, "end": 0.02, "further": 0.5, "spread": None},
    ],
    "without_result": [{"name": "no dropout", "why": "its modules drop\nnothing out"}],
}
SPEED: dict[str, Any] = {
    "legs": 13,
    "step": 0.0412,
    "arms": [
        {"name": "loader workers: 2", "pairs": 4, "from": 0.0412, "to": 0.0127, "saved": 0.69, "spread": [0.66, 0.71]},
        {"name": "bfloat16 autocast", "pairs": 1, "from": 0.0412, "to": 0.05, "saved": -0.21, "spread": None},
    ],
    "without_result": [{"name": "channels last", "why": "its model convolves no images"}],
}
TIMED = [
    "Timed: 13 runs of 64 steps each, 9.5 s in all",
    "unchanged a step takes 41.2 ms",
    "loader workers: 2 step 41.2 ms to 12.7 ms (-69%, 95 % interval -71% to -66%)",
    "bfloat16 autocast step 41.2 ms to 50 ms (+21%, one run of each)",
    "channels last no result: its model convolves no images",
]
MEMORY: dict[str, Any] = {
    "legs": 5,
    "steps": 8,
    "unchanged": {"peak": 100 * 2**20, "full": ""},
    "arms": [
        {"name": "activation checkpointing", "peak": 25 * 2**20, "full": ""},
        {"name": "one parameter at a time", "peak": 100 * 2**20 + 512, "full": ""},
    ],
    "without_result": [{"name": "batch size x 0.5", "why": "it builds no DataLoader"}],
}
PEAKS = [
    "Peak of the device's memory: 5 runs of 8 steps each",
    "unchanged 100 MiB",
    "activation checkpointing 100 MiB to 25 MiB (-75%)",
    "one parameter at a time no difference",
    "batch size x 0.5 no result: it builds no DataLoader",
]
FULL = MEMORY | {
    "unchanged": {"peak": 60 * 2**20, "full": "CUDA out of memory. Tried to allocate 2.00 MiB"},
    "arms": [MEMORY["arms"][0], {"name": "bfloat16 autocast", "peak": 60 * 2**20, "full": "CUDA out of memory"}],
    "without_result": [],
}
FILLED = [
    "unchanged runs out of memory: CUDA out of memory. Tried to allocate 2.00 MiB",
    "activation checkpointing runs, with a peak of 25 MiB",
    "bfloat16 autocast runs out of memory",
]
REMEDIES: dict[str, Any] = {
    "steps": 64,
    "legs": 15,
    "seconds": 61.0,
    "tried": [
        {
            "fault": "debug-left-on",
            "path": "train.py",
            "line": 3,
            "verdict": "helps",
            "facts": ["step 41.2 to 12.7 ms (-69%, 95 % interval -71% to -66%)"],
            "worse": [],
        },
        {
            "fault": "rate",
            "path": "train.py",
            "line": 9,
            "verdict": "harms",
            "facts": ["a"],
            "worse": ["the loss ends at 2"],
        },
        {"fault": "names", "path": "a.py", "line": 1, "verdict": "no difference", "facts": [], "worse": []},
    ],
}
PROVEN = [
    "Remedies tried: 15 runs of 64 steps each, in 61 s",
    "debug-left-on at train.py:3 helps: step 41.2 to 12.7 ms (-69%, 95 % interval -71% to -66%)",
    "rate at train.py:9 harms: the loss ends at 2; a",
    "names at a.py:1 no difference",
]
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


def test_times_stand_in_a_part_of_their_own() -> None:
    words = " ".join(console.render(Case(measurements={"experiment": {**TOLD, "speed": SPEED}})).split())
    assert [said for said in TIMED if said not in words] == []


@pytest.mark.parametrize(("memory", "rows"), [(MEMORY, PEAKS), (FULL, FILLED)], ids=["lower", "full"])
def test_peaks_stand_in_a_part_of_their_own(memory: dict[str, Any], rows: list[str]) -> None:
    words = " ".join(console.render(Case(measurements={"experiment": {"memory": memory}})).split())
    assert [said for said in rows if said not in words] == []


def test_remedies_that_were_tried_are_told_with_their_verdicts() -> None:
    words = " ".join(console.render(Case(measurements={"remedies": REMEDIES})).split())
    assert [said for said in PROVEN if said not in words] == []


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
    assert list(tried({"experiment": told})) == []


@pytest.mark.parametrize(
    "told",
    [
        {"arms": [{}], "steps": "many"},
        {"arms": [{"name": "\x1b[31m", "spread": [None, "x"], "further": 1}], "start": "x"},
        {"arms": [{"name": []}], "without_result": [{"why": 3}, 4]},
        {"memory": {"unchanged": {"peak": 5}, "arms": [{"name": "\x1b[31m"}], "without_result": 3}},
        {"speed": {"arms": [{"name": "\x1b[31m", "from": "x", "spread": ["a", None]}], "legs": None}},
    ],
)
def test_whatever_a_case_holds_it_is_inert_text(told: Any) -> None:
    (found,) = tried({"experiment": told})
    assert "\x1b" not in " ".join(each for row in found.rows for each in row)

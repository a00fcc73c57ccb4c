"""What is read in answers."""

from __future__ import annotations

import difflib

import pytest

from torchtriage_evals import answer
from torchtriage_evals.answer import changed, patched, program, referral, route, said

BEFORE = """import torch


def mean(values):
    total = 0
    for value in values:
        total += value
    return total


def spread(values):
    centre = mean(values)

    return max(values) - centre
"""
AFTER = BEFORE.replace("    return total\n", "    return total / len(values)\n")
DIFF = "".join(difflib.unified_diff(BEFORE.splitlines(keepends=True), AFTER.splitlines(keepends=True), "a/x", "b/x"))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("ROUTE: performance-profiling", ("performance-profiling",)),
        (
            "**ROUTE:** `debugging-techniques`, mixed-precision-and-optimization.",
            ("debugging-techniques", "mixed-precision-and-optimization"),
        ),
        ("- route: debugging-techniques → performance-profiling", ("debugging-techniques", "performance-profiling")),
        ("ROUTE: question", ("question",)),
        ("ROUTE: a\nno, rather\nROUTE: b", ("b",)),
        ("the route is clear", None),
        ("ROUTE:", ()),
    ],
)
def test_a_route_is_read_in_the_last_line_that_has_one(line: str, found: tuple[str, ...] | None) -> None:
    assert route(f"Some words first.\n\n{line}\n") == found


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("ROUTE: elsewhere theory", "theory"),
        ("ROUTE: elsewhere (ml-production)", "ml-production"),
        ("ROUTE: theory", None),
    ],
)
def test_a_referral_names_its_field(line: str, field: str | None) -> None:
    assert referral(line) == field


def test_a_cause_and_a_verdict_are_read_whatever_marks_surround_them() -> None:
    assert said("CAUSE", "> **CAUSE: Hang-In-NCCL**") == "hang-in-nccl"
    assert said("VERDICT", "VERDICT: sound.") == "sound"


@pytest.mark.parametrize(
    "given",
    [
        f"```diff\n{DIFF}```",
        f"Here:\n```python\n{AFTER}```\nVERDICT: faulty",
        f"~~~~\n{AFTER}~~~~",
        DIFF,
        "```diff\n@@ -99,3 +99,3 @@\n         total += value\n-    return total\n+    return total / len(values)\n```",
        "```\n@@\n-    return total\n+    return total / len(values)\n```",
        f"```python\nreturn total / len(values)\n```\nand whole:\n```python\n{AFTER}```\n```sh\npython x.py\n```",
    ],
)
def test_a_diff_or_a_whole_program_is_found_and_applied(given: str) -> None:
    assert program(given, BEFORE) == AFTER


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Divide by the length.",
        "```python\n    return total / len(values)\n```",
        "```python\ndef mean(values):\n    return sum(values) / len(values)\n```",
        "```diff\n@@ -1 +1 @@\n-    return what is not there\n+    return total\n```",
        f"```python\n{AFTER.replace('):', '')}```",
    ],
)
def test_what_is_no_whole_program_and_fits_nowhere_is_none(given: str) -> None:
    assert program(given, BEFORE) is None


def test_a_hunk_goes_where_its_lines_are_nearest() -> None:
    lines = "".join(f"{n}\nsame\n" for n in range(20))
    made = patched(lines, "@@ -32,1 +32,1 @@\n-same\n+other\n")
    assert made is not None
    assert made.splitlines().index("other") == 31


def test_comments_and_spaces_change_no_program() -> None:
    assert not changed(BEFORE, BEFORE.replace("total = 0", "total  =  0  # from here"))
    assert changed(BEFORE, AFTER)


def test_an_answer_without_end_is_read_in_a_moment() -> None:
    assert program("```python\n" * 20_000, BEFORE) is None
    assert answer.route("ROUTE:" + " ," * 100_000) == ()

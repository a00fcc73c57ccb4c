"""What no text of ours may say, whoever prints it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchtriage.core.case import Case
from torchtriage.report.formats import FORMATS, render

HOME = Path(__file__).resolve().parents[2]
ALL_CLEAR = re.compile(r"nothing\s+(?:is\s+|was\s+|seems?\s+)?wrong|no (?:faults?|problems?|errors?) (?:was|were) found\b|"
                       r"nothing was found|all (?:is )?(?:well|good|clear)\b", re.IGNORECASE)  # fmt: skip


def texts() -> Iterator[tuple[str, str]]:
    """Every string that a person can come to see: in the program, its pages, templates and documentation."""
    for path in sorted((HOME / "src").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                yield f"{path.relative_to(HOME)}:{node.lineno}", node.value
    for pattern in ("src/**/*.md", "src/**/*.j2", "src/**/*.js", "docs/*.md", "README.md"):
        for path in sorted(HOME.glob(pattern)):
            yield str(path.relative_to(HOME)), path.read_text(encoding="utf-8")


def test_no_text_of_ours_says_that_nothing_is_wrong() -> None:
    """That no known fault was found in so many steps is the most that a look can show."""
    assert [place for place, text in texts() if ALL_CLEAR.search(text)] == []


@pytest.mark.parametrize("form", FORMATS)
def test_no_report_of_a_case_says_that_nothing_is_wrong(form: str, case: Case) -> None:
    assert not ALL_CLEAR.search(render(case, form))

"""Every form of every hand-made case, byte by byte.

After a change that is meant: GOLDEN=write pytest tests/report/test_golden.py, then read the difference.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs

import torchtriage
from torchtriage.core.case import Case
from torchtriage.core.plain import written
from torchtriage.diagnose import compare as comparing
from torchtriage.report import compare as report
from torchtriage.report import route
from torchtriage.report.formats import FORMATS, compared, render

GOLDEN = Path(__file__).parent.parent / "golden"
SHOWN = ("ill-run", "healthy-run", "ranks-run", "hung-run", "checked", "question", "referral")
ASKED = ("planned", "question", "referral")
ENDINGS = {
    "console": "console.txt",
    "concise": "concise.txt",
    "github": "github.txt",
    "markdown": "md",
    "sarif": "sarif",
}


def lasting(text: str) -> str:
    """TEXT without the style, and without what changes with a version: ours, Plotly's, and the hashes of both."""
    text = text.replace(get_plotlyjs(), "PLOTLY").replace(f'"{torchtriage.__version__}"', '"VERSION"')
    text = re.sub(r'<template id="[0-9a-f]{64}"></template>', "<template></template>", text)
    text = re.sub(r"(<style[^>]*>).*?</style>", r"\1STYLE</style>", text, flags=re.S)
    return re.sub(r"sha256-[\w+/=]+", "sha256-HASH", text)


def compare(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("GOLDEN") == "write":
        path.write_text(lasting(text), encoding="utf-8")
    assert lasting(text) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", SHOWN)
def test_a_case_looks_as_agreed_in_every_form(name: str, form: str, cases: dict[str, Case]) -> None:
    compare(f"{name}.{ENDINGS.get(form, form)}", render(cases[name], form))


def test_a_comparison_looks_as_agreed(ill_run: Case, mended: Case) -> None:
    told = comparing.compare(ill_run, mended)
    compare("compare.txt", report.render(told))
    compare("compare.json", report.as_json(told))
    compare("compare.md", report.markdown(told))
    compare("compare.html", compared(told, "html"))


@pytest.mark.parametrize("name", ASKED)
def test_an_answer_to_a_query_looks_as_agreed(name: str, cases: dict[str, Case]) -> None:
    query, to = cases[name].query, cases[name].route
    assert query is not None
    assert to is not None
    compare(f"ask-{name}.txt", route.render(query, to))
    compare(f"ask-{name}.json", written(route.as_dict(query, to)))

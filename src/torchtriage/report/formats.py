"""The forms in which a case can be rendered; each loads its engine only when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from torchtriage.core.case import Case
from torchtriage.report.paper import PLAIN, Paper

if TYPE_CHECKING:
    from torchtriage.diagnose.compare import Comparison

FORMATS = ("console", "concise", "github", "html", "json", "markdown", "sarif")


def render(case: Case, form: str, paper: Paper = PLAIN) -> str:
    """CASE in one of the FORMATS. The paper matters to the console's form alone."""
    module = import_module(f"torchtriage.report.{form}")
    written: str = module.render(case, paper) if form == "console" else module.render(case)
    return written


def compared(told: Comparison, form: str, paper: Paper = PLAIN) -> str:
    """TOLD as console, json, html or markdown."""
    if form == "html":
        from torchtriage.report.html.compare import render as page

        return page(told)
    from torchtriage.report import compare

    match form:
        case "json":
            return compare.as_json(told)
        case "markdown":
            return compare.markdown(told)
        case _:
            return compare.render(told, paper)

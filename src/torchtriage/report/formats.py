"""The forms in which a case can be rendered; each loads its engine only when it is asked for."""

from __future__ import annotations

from importlib import import_module

from torchtriage.core.case import Case
from torchtriage.report.paper import PLAIN, Paper

FORMATS = ("console", "concise", "github", "html", "json", "markdown", "sarif")


def render(case: Case, form: str, paper: Paper = PLAIN) -> str:
    """CASE in one of the FORMATS. The paper matters to the console's form alone."""
    module = import_module(f"torchtriage.report.{form}")
    written: str = module.render(case, paper) if form == "console" else module.render(case)
    return written

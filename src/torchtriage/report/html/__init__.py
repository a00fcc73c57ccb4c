"""The report as one HTML file that needs nothing else: no network, no folder beside it, no unsafe script or style."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from torchtriage.core.case import Case
from torchtriage.core.plain import row
from torchtriage.report.figure import figure
from torchtriage.report.html.plots import Plot, plots
from torchtriage.report.html.seen import seen
from torchtriage.report.html.setup import setup
from torchtriage.report.measures import ranks
from torchtriage.report.outline import outline
from torchtriage.report.text import count, inert

_HERE = Path(__file__).parent
# Plotly's map engine sets a style, which the policy refuses, unless it finds an element of this name.
_STYLED = re.compile(r'getElementById\("([0-9a-f]{64})"\)')
_TAG = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def render(case: Case) -> str:
    """CASE as an HTML page; plots, and the engine that draws them, only where the case holds series of figures."""
    drawn = plots(case)
    style = (_HERE / "style.css").read_text(encoding="utf-8")
    scripts = _scripts() if drawn else []
    page = _environment().get_template("page.html.j2")
    return page.render(
        story=outline(case),
        asked=inert(case.query.text).strip() if case.query else "",
        ranks=ranks(case.measurements),
        setup=setup(case.measurements),
        plots=drawn,
        seen=lambda sight: seen(sight, drawn),
        data=_data(drawn),
        style=Markup(style),  # noqa: S704 - our own file
        scripts=[Markup(script) for script in scripts],  # noqa: S704 - our own file and Plotly's wheel
        styled=sorted({name for script in scripts for name in _STYLED.findall(script)}),
        policy=_policy(style, scripts),
    )


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"figure": figure, "count": count}
    return made


def _scripts() -> list[str]:
    from plotly.offline import get_plotlyjs

    engine: str = get_plotlyjs()
    return [engine, (_HERE / "plots.js").read_text(encoding="utf-8")]


def _data(drawn: tuple[Plot, ...]) -> Markup:
    """JSON that no text within it can end: a script element ends at the first "</script"."""
    data: Any = msgspec.to_builtins(drawn)
    return Markup(row(data).translate(_TAG))  # noqa: S704 - every < > & is spelt out


def _policy(style: str, scripts: list[str]) -> str:
    """Nothing may be loaded, and only these very scripts and this style may act; by content, so that bytes repeat."""
    allowed = " ".join(map(_source, scripts)) or "'none'"
    return f"default-src 'none'; script-src {allowed}; style-src {_source(style)}; base-uri 'none'; form-action 'none'"


def _source(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"

"""The report as one HTML file that needs nothing else: no network, no folder beside it, no unsafe script or style."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from markupsafe import Markup

from torchtriage.core.case import Case
from torchtriage.core.plain import row
from torchtriage.report.html.heat import Heat, divergence, heat
from torchtriage.report.html.memory import memories
from torchtriage.report.html.plots import Plot, plots
from torchtriage.report.html.seen import seen
from torchtriage.report.html.setup import setup
from torchtriage.report.html.sheet import HERE, environment, policy, style
from torchtriage.report.measures import MEANS
from torchtriage.report.outline import outline
from torchtriage.report.text import inert

# Plotly's map engine sets a style, which the policy refuses, unless it finds an element of this name.
_STYLED = re.compile(r'getElementById\("([0-9a-f]{64})"\)')
_TAG = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def render(case: Case) -> str:
    """CASE as an HTML page; plots, and the engine that draws them, only where the case holds series of figures."""
    drawn, looks, warm = plots(case), divergence(case.measurements), heat(case.measurements)
    held = memories(case.measurements)
    figures = (*drawn, *([looks] if looks else []), *(each.plot for each in held if each.plot))
    sheet = style()
    scripts = _scripts([*(["plots.js"] if figures else []), *(["heat.js"] if warm else [])])
    page = environment().get_template("page.html.j2")
    return page.render(
        story=outline(case),
        asked=inert(case.query.text).strip() if case.query else "",
        setup=setup(case.measurements),
        plots=drawn,
        seen=lambda sight: seen(sight, figures),
        figures=figures,
        looks=looks,
        memories=held,
        means=MEANS,
        heat=warm,
        data=_data(figures),
        warmth=_data(warm),
        style=Markup(sheet),  # noqa: S704 - our own file
        scripts=[Markup(script) for script in scripts],  # noqa: S704 - our own file and Plotly's wheel
        styled=sorted({name for script in scripts for name in _STYLED.findall(script)}),
        policy=policy(sheet, scripts, images=warm is not None),
    )


def _scripts(names: list[str]) -> list[str]:
    """The engine, and our own of these NAMES."""
    from plotly.offline import get_plotlyjs

    own = [(HERE / name).read_text(encoding="utf-8") for name in names]
    return [str(get_plotlyjs()), *own] if own else []


def _data(drawn: tuple[Plot, ...] | Heat | None) -> Markup:
    """JSON that no text within it can end: a script element ends at the first "</script"."""
    data: Any = msgspec.to_builtins(drawn)
    return Markup(row(data).translate(_TAG))  # noqa: S704 - every < > & is spelt out

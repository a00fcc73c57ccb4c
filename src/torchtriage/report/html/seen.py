"""Where in the plots a piece of evidence can be seen."""

from __future__ import annotations

import re
from collections.abc import Iterable

from torchtriage.report.html.plots import Plot
from torchtriage.report.outline import Sight

_HOMES = (
    ("snapshot", re.compile(r"^of (?:what is in use|the device)\b|\b[KMGT]iB per (?:time|step)$")),
    ("memory", re.compile(r"\b(?:bytes?|[KMGT]iB)\b")),
    ("time", re.compile(r"^(?:s|seconds?|share|(?:share )?of the step)$")),
    ("scale", re.compile(r"^loss scale$")),
    ("divergence", re.compile(r"^tensors?$")),
)
_BY_STEP = ("loss", "grad_norm", "time", "memory")


def seen(sight: Sight, drawn: Iterable[Plot]) -> Plot | None:
    """The plot that draws what was measured; else, where a step is known, the first of the plots that reach it."""
    plots = {plot.id: plot for plot in drawn}
    for name, unit in _HOMES:
        if name in plots and unit.search(sight.unit):
            return plots[name]
    if sight.step is None:
        return None
    last = max((plot.steps[-1] for plot in plots.values()), default=-1)
    return next((plots[name] for name in _BY_STEP if name in plots), None) if sight.step <= last else None

"""Sentences about the user's own code: which line takes the time of a step, and how much of it nothing explains."""

from __future__ import annotations

from typing import Any

from torchtriage.core.plain import number, within
from torchtriage.report.figure import figure
from torchtriage.report.text import line

NOTABLE = 0.10
"""Share of the step below which a function is not worth a sentence."""
UNEXPLAINED = 0.30
"""Share of the step, in no phase and on no line, from which there is something to do next."""
_AGAIN = " Run again: its share of the step shows what that brings."
_SHORTER = {
    "data": "Prepare once what `{}` computes anew for each batch and store it, or let DataLoader workers run it while "
    "the model computes." + _AGAIN,
    "other": "Run `{}` every N steps, or without Python loops over elements, where the step does not need its result."
    + _AGAIN,
}
"""By phase: what shortens work of the user's own that is not the model's. Within the model, the model decides."""
NEXT = (
    "Record ten steps with torch.profiler (with_stack=True, on_trace_ready=tensorboard_trace_handler(DIR)) and read "
    "them with `torchtriage read DIR`."
)


def sentence(measurements: dict[str, Any]) -> str:
    """61 % of the step is spent in `get_batch` (data.py:41). "" where no function of the user's takes a tenth of it."""
    share, row = _most(measurements)
    return f"{figure(share, 'share')} of the step is spent {_named(row)}." if share >= NOTABLE else ""


def advice(measurements: dict[str, Any]) -> str:
    """What to do about a function that takes much of the step outside of forward, backward and update; else ""."""
    share, row = _most(measurements)
    what = _SHORTER.get(str(row.get("phase")), "") if share >= UNEXPLAINED else ""
    return what.format(line(str(row.get("function") or f"{row.get('path')}:{row.get('line')}")))


def unexplained(measurements: dict[str, Any]) -> str:
    """30 % of the step is in no phase and on no sampled line: what to do next. "" where it is little."""
    share = number(within(measurements, "unexplained"))
    if share is None or not UNEXPLAINED <= share <= 1:
        return ""
    return f"{figure(share, 'share')} of the step is unexplained: in no phase, and on no sampled line. {NEXT}"


def _most(measurements: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    """The share of the function that takes most of the step, and the line of it that takes most."""
    rows = within(measurements, "lines")
    best: tuple[float, dict[str, Any]] = (0.0, {})
    for row in (each for each in rows if isinstance(each, dict)) if isinstance(rows, list) else ():
        share = number(row.get("function_share"))
        share = number(row.get("share")) if share is None else share
        if share is not None and best[0] < share <= 1:
            best = share, row
    return best


def _named(row: dict[str, Any]) -> str:
    where = line(f"{row.get('path')}:{row.get('line')}")
    function = line(str(row.get("function") or ""))
    return f"in `{function}` ({where})" if function else f"at {where}"

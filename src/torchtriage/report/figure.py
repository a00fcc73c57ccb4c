"""Numbers with their units, as a reader says them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import isfinite

from torchtriage.core.evidence import Evidence

_TIME = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_SIZE = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
_RATE = re.compile("( per |/| of )")
_NAMES = {
    "s": "time",
    "second": "time",
    "seconds": "time",
    "b": "size",
    "byte": "size",
    "bytes": "size",
    "share": "share",
    "fraction": "share",
}


def figure(value: float, unit: str | None = None) -> str:
    """VALUE in three digits with its UNIT: seconds and bytes in the scale that fits, shares in per cent.

    "bytes per step", "bytes/step" and "share of the step" are scaled as their first word is.
    """
    if not isfinite(value):
        return f"{value} {unit}".strip() if unit else str(value)
    base, *rate = _parts(unit)
    match _NAMES.get(base.lower()):
        case "time":
            return _scaled(value, _TIME, "s") + "".join(rate)
        case "size":
            return _scaled(value, _SIZE, "B") + "".join(rate)
        case "share":
            return f"{value * 100:.1f} %" + "".join(rate)
        case _:
            return f"{_digits(value)} {unit}" if unit else _digits(value)


def measured(item: Evidence) -> str:
    """The measure of a piece of evidence with its interval; "" when it has none."""
    if item.value is None:
        return ""
    if item.spread is None or item.spread[0] == item.spread[1]:
        return figure(item.value, item.unit)
    base, (low, high) = _parts(item.unit)[0], item.spread
    return f"{figure(item.value, item.unit)} ({figure(low, base)} to {figure(high, base)})"


def _parts(unit: str | None) -> list[str]:
    """The first word of UNIT, then what it is taken per or of; "of the step" alone is a share of it."""
    return _RATE.split(f"share {unit}" if (unit or "").startswith("of ") else unit or "", maxsplit=1)


def _scaled(value: float, scales: Iterable[tuple[float, str]], base: str) -> str:
    for factor, name in scales:
        if abs(value) >= factor * 0.9995:
            return f"{_digits(value / factor)} {name}"
    return f"{value:.3g} {base}" if value else f"0 {base}"


def _digits(value: float) -> str:
    """Three digits that count; whole numbers below a million in full."""
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"

"""Links that are slower than others, though everybody had come to the collective."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from torchtriage.examine.artefact.trace.traces import Traces

LARGE = 2**20  # bytes from which a collective tells of its link and not of its latency
SLOW = 2.0  # times as long as the same collective takes among other ranks
_SHOWN = 8


def slow(traces: Traces) -> str:
    """The group of ranks among which the same collective takes SLOW times as long as in half of the other groups."""
    by_kind: dict[tuple[str, int, int], dict[tuple[int, ...], list[int]]] = {}
    for each in traces.transfers:
        if each.bytes >= LARGE:
            kind = by_kind.setdefault((each.operation, each.bytes, len(each.ranks)), {})
            kind.setdefault(each.ranks, []).append(each.nanoseconds)
    found = []
    for (operation, size, _), groups in by_kind.items():
        times = {ranks: median(each) for ranks, each in groups.items()}
        order = sorted(times.values())
        for ranks, time in times.items():
            usual = _without(order, time)
            if usual and time > SLOW * usual:
                said = f"{operation} of {size / 2**20:.0f} MiB takes {time / usual:.1f} times as long as among others"
                found.append((time / usual, f"the link among {_named(traces, ranks)} is slow: {said}"))
    return f"; {max(found)[1]}, though all had come" if found else ""


def _without(order: Sequence[float], time: float) -> float:
    """The median of ORDER without TIME, which is one of the later half where it is a slow one; 0 without others."""
    others = order[:-1] if time > order[(len(order) - 1) // 2] else order[1:]
    return median(others) if others else 0.0


def _named(traces: Traces, ranks: Sequence[int]) -> str:
    named = ", ".join(map(str, ranks[:_SHOWN])) + (f" and {len(ranks) - _SHOWN} more" if len(ranks) > _SHOWN else "")
    known = list(dict.fromkeys(traces.machines.get(rank, "") for rank in ranks))
    if not all(known) or len(traces.machines) == len(set(traces.machines.values())):
        return f"ranks {named}"
    if len(known) == 1:
        return f"ranks {named}, all of {known[0]},"
    return f"ranks {named}, of {len(known)} machines ({', '.join(known[:2])}{', …' if len(known) > 2 else ''}),"

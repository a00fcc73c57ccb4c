"""Profiler traces (Kineto or Chrome JSON): one rank's RankSummary, and all ranks' Traces."""

from __future__ import annotations

from collections.abc import Sequence

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.artefact.opened import Unreadable
from torchtriage.examine.artefact.trace.figures import measurements
from torchtriage.examine.artefact.trace.rank import Glance, RankSummary
from torchtriage.examine.artefact.trace.traces import NAME, Traces, together

__all__ = ["Glance", "RankSummary", "Traces", "Unreadable", "glance", "measurements", "read", "summary", "together"]


def read(paths: Sequence[str]) -> Traces:
    """The traces at PATHS, one for each rank, one after the other in this process."""
    summaries: list[RankSummary] = []
    unread: list[Inconclusive] = []
    for path in paths:
        try:
            summaries.append(summary(path))
        except Unreadable as error:
            unread.append(Inconclusive(NAME, f"{path}: {error.why}", error.do))
    return together(summaries, unread)


def summary(path: str) -> RankSummary:
    """What is kept of the trace at PATH: at most 100 KB, in JSON or pickled. Raises Unreadable."""
    from torchtriage.examine.artefact.trace.summed import summary as of

    return of(path)


def glance(path: str) -> Glance:
    """The first word on the trace at PATH, in a third of the time. Raises Unreadable."""
    from torchtriage.examine.artefact.trace.scanned import glance as of

    return of(path)

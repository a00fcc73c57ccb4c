"""Profiler traces (Kineto or Chrome JSON): one rank's RankSummary, and all ranks' Traces."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from torchtriage.examine.artefact.engines import Engine, Work, mapped
from torchtriage.examine.artefact.opened import Unreadable
from torchtriage.examine.artefact.trace.drawn import as_run
from torchtriage.examine.artefact.trace.figures import measurements
from torchtriage.examine.artefact.trace.rank import Glance, RankSummary
from torchtriage.examine.artefact.trace.shared import shared
from torchtriage.examine.artefact.trace.traces import Traces, together
from torchtriage.examine.artefact.trace.unread import unread

__all__ = [
    "Glance",
    "RankSummary",
    "Traces",
    "Unreadable",
    "as_run",
    "glance",
    "measurements",
    "read",
    "summary",
    "together",
]
ONE = Engine("one")
SUMMED = f"{__name__}:summary"


def read(paths: Sequence[str], engine: Engine = ONE) -> Traces:
    """The traces at PATHS, one for each rank. ENGINE: where each becomes a summary; all meet in this process."""
    told = mapped(Work(SUMMED, RankSummary), paths, engine, partial(shared, ranks=len(paths)))
    return together([each.value for each in told if each.value is not None], unread(paths, told))


def summary(path: str) -> RankSummary:
    """What is kept of the trace at PATH: at most 200 KB of JSON. Raises Unreadable."""
    from torchtriage.examine.artefact.trace.sound import sound
    from torchtriage.examine.artefact.trace.summed import summary as of

    return sound(of(path))


def glance(path: str) -> Glance:
    """The first word on the trace at PATH, in a third of the time. Raises Unreadable."""
    from torchtriage.examine.artefact.trace.scanned import glance as of

    return of(path)

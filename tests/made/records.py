"""Records made by hand, and what the readings and diagnose make of them."""

from __future__ import annotations

from typing import Any

from torchtriage.catalog.load import catalog
from torchtriage.core.evidence import Evidence, Inconclusive, Outcome
from torchtriage.diagnose import weigh
from torchtriage.examine.detector import perform
from torchtriage.examine.run.job.events import Event
from torchtriage.examine.run.record import RankRecord, RunRecord

Events = list[dict[str, Any]]
STEP = {
    "kind": "step", "seconds": 0.1, "data": 0.01, "transfer": 0.0, "forward": 0.03, "backward": 0.04,
    "optimizer": 0.01, "probes": 0.0, "batches": 1, "epochs": 0, "forwards": 1, "skipped": 0, "rss": 10**9,
    "allocated": None, "loss": 1.0,
}  # fmt: skip
LOADER = {
    "kind": "loader", "step": 0, "dataset": "Digits", "source": "Digits.__getitem__", "path": "train.py", "line": 7,
    "batch_size": 16, "num_workers": 0, "pin_memory": False,
}  # fmt: skip
MIB = 2**20


def steps(count: int, **each: Any) -> Events:
    """COUNT steps that differ from a healthy one by EACH: a value, or a function of the step's number."""
    return [
        {**STEP, "step": n, **{name: value(n) if callable(value) else value for name, value in each.items()}}
        for n in range(count)
    ]


def event(kind: str, **fields: Any) -> Event:
    """One of a KIND that no class stands for."""
    made: type[Event] = type(kind, (Event,), {"kind": kind})
    return made(**fields)


def outcome(detector: Any, events: Events) -> Outcome:
    (seen,) = perform([detector], RunRecord((RankRecord(0, tuple(events)),)))
    return seen


def evidence(detector: Any, events: Events) -> tuple[Evidence, ...]:
    seen = outcome(detector, events)
    assert not isinstance(seen, Inconclusive), seen
    return seen.evidence


def found(detector: Any, events: Events) -> set[str]:
    """The faults that diagnose makes of what DETECTOR sees in EVENTS."""
    return {finding.fault.slug for finding in weigh.findings([outcome(detector, events)], catalog())}


def given_verdicts(detector: Any, events: Events) -> set[str]:
    return {verdict.verdict for verdict in weigh.verdicts([outcome(detector, events)], catalog())}

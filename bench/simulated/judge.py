"""How near a case comes to what the ledgers of its job say: the limit, the line, the times and bytes, false alarms."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from corpus import Spot, exact

from simulated.jobs import Job
from simulated.truth import CLEAR, SPARED, Truth
from torchtriage.core.case import Case
from torchtriage.core.evidence import Evidence
from torchtriage.core.fault import Severity

LIMITS = {
    "launch": frozenset({"launch-bound", "host-bound"}),
    "kernel": frozenset({"compute-bound"}),
    "bandwidth": frozenset({"bandwidth-bound"}),
    "transfer": frozenset({"transfer-bound", "pin-memory-blocking"}),
    "input": frozenset({"input-bound"}),
    "loop": frozenset({"loop-bound"}),
    "sync": frozenset({"sync-bound"}),
    "communication": frozenset({"communication-bound"}),
    "peer": frozenset({"straggler"}),
}
"""By what limits a step, the faults and verdicts that say so."""
OF_LIMITS = frozenset.union(*LIMITS.values())
BESIDE = 0.1
"""A cause that costs so much of the step may be named beside the one that costs most."""
BUSY, LOADING = 0.55, 0.27
"""Shares from which compute-bound and input-bound may be said beside: a tenth below the bounds of their pages."""
TOLERANCE = 0.05
"""Times and bytes may differ from the ledger's by this share of them."""
CHECKS = ("limit", "gain")
"""Checks that declare what limits the steps, which other costs of the device may change."""

_TIME = re.compile(r"(\d[\d,]*(?:\.\d+)?) (ns|µs|us|ms|s)\b")
_SIZE = re.compile(r"(\d[\d,]*(?:\.\d+)?) (B|KiB|MiB|GiB|bytes)\b")
_UNITS = {"ns": 1.0, "µs": 1e3, "us": 1e3, "ms": 1e6, "s": 1e9}
_BYTES = {"B": 1.0, "bytes": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}


def measured(job: Job, truths: Sequence[Truth]) -> Job:
    """JOB as its ledgers show it: where another cause limits the steps than was declared, that is what must be said."""
    names = [check.partition(":")[2] for check in job.checks if check.partition(":")[0] in CHECKS]
    if not names or not truths or not truths[0].gains or job.is_healthy:
        return job
    limit, gains = truths[0].limit, truths[0].gains
    if limit in names or any(gains[name] > CLEAR for name in names if name in SPARED):
        return job
    found = {"sync": truths[0].waits, "transfer": truths[0].transfers}.get(limit, {})
    lines = tuple(line for line, _ in sorted(found.items(), key=lambda row: -row[1])[:3])
    expected = LIMITS[limit]
    return replace(job, slugs=expected, verdicts=frozenset(), also=job.also | job.expected, lines=lines, page=True)


def backed(truths: Sequence[Truth]) -> frozenset[str]:
    """What else about limits the ledgers bear out."""
    found: set[str] = set()
    for truth in truths:
        for cause, share in truth.gains.items():
            found |= LIMITS[cause] if share > BESIDE else set()
        found |= LIMITS["kernel"] if truth.busy > BUSY else set()
        found |= LIMITS["input"] if truth.loading > LOADING else set()
        found |= LIMITS["bandwidth"] if truth.memory_share > 0.5 and truth.busy > BUSY else set()
    return frozenset(found)


@dataclass(frozen=True)
class Figure:
    """One measure that was said, beside the ledger's."""

    name: str
    said: float
    true: float

    @property
    def is_near(self) -> bool:
        return abs(self.said - self.true) <= TOLERANCE * abs(self.true)


@dataclass(frozen=True)
class Judged:
    """A case against its job and the ledgers; `case` is None where the job left no record that could be judged."""

    job: Job
    case: Case | None
    truths: Sequence[Truth] = field(default=())

    @property
    def shown(self) -> frozenset[str]:
        return self.case.shown if self.case else frozenset()

    @property
    def found(self) -> frozenset[str]:
        return self.job.expected & self.shown

    @property
    def false(self) -> frozenset[str]:
        """Faults above info, and verdicts of limits, that neither are true nor may be said beside what is."""
        allowed = self.job.expected | self.job.also | backed(self.truths)
        findings = self.case.findings if self.case else ()
        loud = {each.fault.slug for each in findings if each.fault.severity is not Severity.INFO}
        given = {each.verdict for each in self.case.verdicts} if self.case else set()
        return frozenset((loud | (given & OF_LIMITS)) - allowed)

    @property
    def alarms(self) -> frozenset[str]:
        """Findings above info on a healthy job."""
        findings = self.case.findings if self.case else ()
        return frozenset(each.fault.slug for each in findings if each.fault.severity is not Severity.INFO)

    @property
    def is_right(self) -> bool:
        return bool(self.found) and not self.false

    @property
    def evidence(self) -> list[Evidence]:
        """What shows the faults and verdicts that were expected."""
        if self.case is None:
            return []
        findings = [item for each in self.case.findings if each.fault.slug in self.found for item in each.evidence]
        return findings + [item for each in self.case.verdicts if each.verdict in self.found for item in each.evidence]

    @property
    def is_placed(self) -> bool:
        spot = Spot(self.job.lines, rank=self.job.rank)
        lines = replace(spot, rank=None)
        if any(exact(each.place, spot, self.job.script) for each in self.evidence):
            return True
        # the rank and the line may stand in two pieces of evidence
        return (
            spot.rank is not None
            and any(each.place.rank == spot.rank for each in self.evidence)
            and any(exact(each.place, lines, self.job.script) for each in self.evidence)
        )

    @property
    def figures(self) -> list[Figure]:
        """Every time, share and size that was said and that the ledger knows, too; what is said twice counts once."""
        if self.case is None or not self.truths:
            return []
        return list(dict.fromkeys([*self._of_run(self.case.measurements), *self._of_evidence()]))

    def _of_run(self, measurements: Mapping[str, object]) -> Iterator[Figure]:
        truth = self.truths[0]
        time, memory = measurements.get("step_time"), measurements.get("memory")
        if isinstance(time, Mapping) and truth.gains:
            yield Figure("step", float(time["median"]) * 1e9, truth.period)
        peak = memory.get("peak") if isinstance(memory, Mapping) else None
        if isinstance(peak, int | float):
            yield Figure("peak", float(peak), float(truth.peak))

    def _of_evidence(self) -> Iterator[Figure]:
        shares, truth = _shares(self.truths), self.truths[0]
        for each in self.evidence:
            name = each.detector.partition("/")[2]
            if each.value is not None and name in shares and truth.gains:
                yield Figure(name, each.value, shares[name])
            spent = _spent(name, each.place.line, truth)
            if spent and (said := _numbers(_TIME, each.fact, _UNITS)):
                yield Figure("time at a line", min(said, key=lambda time: abs(time - spent)), spent)
            if name == "transfer-wait" and (said := _numbers(_SIZE, each.fact, _BYTES)):
                yield Figure("bytes copied", min(said, key=lambda size: abs(size - truth.copied)), truth.copied)


def _numbers(pattern: re.Pattern[str], text: str, units: Mapping[str, float]) -> list[float]:
    return [float(each[1].replace(",", "")) * units[each[2]] for each in pattern.finditer(text)]


def _spent(name: str, line: int | None, truth: Truth) -> float:
    """Nanoseconds a step for which the host waits at LINE, by what the detector NAME is about."""
    found = {"sync-wait": truth.waits, "transfer-wait": truth.transfers, "pinned-wait": truth.transfers}.get(name, {})
    return found.get(line or 0, 0.0)


def _shares(truths: Sequence[Truth]) -> dict[str, float]:
    """By the names of the detectors on the pages, the share of the step that they are about."""
    truth = truths[0]
    late = max((each.lateness / each.period for each in truths), default=0.0) if truth.gains else 0.0
    return {
        "sync-wait": truth.gains.get("sync", 0.0),
        "transfer-wait": truth.copying,
        "data-wait": truth.loading,
        "compute-share": truth.busy,
        "communication": truth.gains.get("communication", 0.0),
        "straggler": late,
    }

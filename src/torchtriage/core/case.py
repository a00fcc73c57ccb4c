"""Everything said, planned, seen and concluded about one job: one JSON file, to be taken up later."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from torchtriage.core.errors import NOTHING_EXAMINED, TriageError
from torchtriage.core.evidence import Evidence, Inconclusive, Observed, Outcome, Verdict
from torchtriage.core.fault import Fault
from torchtriage.core.finding import Finding
from torchtriage.core.plain import SCHEMA, plain, within, written
from torchtriage.core.plan import Plan, Route, Step, remaining
from torchtriage.core.query import Query
from torchtriage.core.some import some


class Case(Struct, frozen=True):
    """Append-only: every station returns a new case with its own field filled.

    measurements: figures of a run as plain JSON values, by the names of the interface; times in seconds,
    memory in bytes, shares of the step from 0 to 1. opened: steps that the plan lacks and the evidence asks for.
    """

    query: Query | None = None
    route: Route | None = None
    outcomes: tuple[Outcome, ...] = ()
    findings: tuple[Finding, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    measurements: dict[str, Any] = field(default_factory=dict)
    opened: tuple[Step, ...] = ()

    @property
    def inconclusive(self) -> tuple[Inconclusive, ...]:
        """What could not be seen."""
        return tuple(outcome for outcome in self.outcomes if isinstance(outcome, Inconclusive))

    @property
    def observed(self) -> tuple[Observed, ...]:
        return tuple(outcome for outcome in self.outcomes if isinstance(outcome, Observed))

    @property
    def shown(self) -> frozenset[str]:
        """The slugs of all faults found and verdicts given."""
        return frozenset({f.fault.slug for f in self.findings} | {v.verdict for v in self.verdicts})

    @property
    def open_steps(self) -> tuple[Step, ...]:
        """The steps that may be taken now: those of the plan, and those that the evidence opened beside it.

        None of them asks for an examination that this case holds already.
        """
        planned = self.route.open(self.shown) if isinstance(self.route, Plan) else ()
        ranks = within(self.measurements, "setup", "world_size")
        number_of_ranks = ranks if isinstance(ranks, int) else 1
        return tuple(remaining(step, self.examinations, ranks=number_of_ranks) for step in (*planned, *self.opened))

    @property
    def examinations(self) -> frozenset[str]:
        """The examinations that have seen something: "check", "run"."""
        looked = {outcome.detector.partition("/")[0] for outcome in self.observed}
        return frozenset(verb for verb, kind in (("check", "source"), ("run", "run")) if kind in looked)

    def as_dict(self) -> dict[str, Any]:
        """The case as JSON values in the shape of the interface; numbers that are not finite as strings."""
        return {
            "kind": "case",
            "schema": SCHEMA,
            "query": plain(self.query),
            "route": plain(self.route),
            "findings": [finding_as_dict(finding) for finding in self.findings],
            "verdicts": plain(self.verdicts),
            "outcomes": plain(self.outcomes),
            "inconclusive": plain(self.inconclusive),
            "measurements": plain(self.measurements),
            "open_steps": plain(self.open_steps),
            "opened": plain(self.opened),
        }

    def encode(self) -> bytes:
        """The same case gives the same bytes."""
        return written(self.as_dict()).encode()

    @classmethod
    def decode(cls, data: bytes, where: str = "case") -> Case:
        """Raises TriageError when DATA is no case of this schema."""
        try:
            head = msgspec.json.decode(data, type=_Head)
            if head.kind != "case" or head.schema != SCHEMA:
                raise TriageError(
                    f"kind {head.kind!r} with schema {head.schema!r} is not a case with schema {SCHEMA}",
                    where,
                    "Read it with the version of torchtriage that wrote it, or run the examination again.",
                    NOTHING_EXAMINED,
                )
            wire = msgspec.json.decode(data, type=_CaseOnDisk, strict=False)
            findings = tuple(_finding(item) for item in wire.findings)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise TriageError(
                f"not a case that can be read: {error}",
                where,
                "Give a case.json that `torchtriage run` or `--format json` wrote.",
                NOTHING_EXAMINED,
            ) from error
        return cls(wire.query, wire.route, wire.outcomes, findings, wire.verdicts, wire.measurements, wire.opened)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Case:
        """Reads a case file; raises TriageError when it cannot be read or is no case."""
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise TriageError(
                f"cannot be read: {error.strerror}", str(path), "Name an existing case.json.", NOTHING_EXAMINED
            ) from error
        return cls.decode(data, str(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes beside the target, then renames: a reader sees the old file or the whole new one."""
        target = Path(path)
        beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            beside.write_bytes(self.encode())
            beside.replace(target)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise TriageError(
                f"cannot be written: {error.strerror}", str(path), "Name a folder that can be written and has room."
            ) from error


def finding_as_dict(finding: Finding) -> dict[str, Any]:
    """A finding in the flat shape that every printed JSON shares."""
    fault = plain(finding.fault)
    edits = [edit for item in finding.evidence for edit in plain(item.edits)]
    return {
        "kind": "finding",
        "fault": fault.pop("slug"),
        "specialist": fault.pop("specialist"),
        "class": fault.pop("class"),
        "severity": finding.fault.severity.value,
        "confidence": fault.pop("confidence"),
        "persona": fault.pop("persona"),
        "fingerprint": finding.fingerprint,
        "title": fault.pop("title"),
        "evidence": plain(finding.evidence),
        "remedies": [
            {**remedy, "edits": [_without(edit, "remedy") for edit in edits if edit["remedy"] == remedy["id"]]}
            for remedy in fault.pop("remedies")
        ],
        **fault,
    }


def _without(mapping: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key != name}


class _Head(Struct):
    kind: Any = None
    schema: Any = None


class _CaseOnDisk(Struct):
    query: Query | None
    route: Route | None
    findings: tuple[dict[str, Any], ...]
    verdicts: tuple[Verdict, ...]
    outcomes: tuple[Outcome, ...]
    measurements: dict[str, Any]
    opened: tuple[Step, ...] = ()


def _finding(item: dict[str, Any]) -> Finding:
    """The finding that `finding_as_dict` flattened; its derived fields are computed anew."""
    fault = msgspec.convert({**item, "slug": item.get("fault")}, Fault)
    evidence = msgspec.convert(item.get("evidence", []), tuple[Evidence, ...], strict=False)
    return Finding(fault, some(evidence, f"evidence for {fault.slug}"))

"""How a job ended badly leads its case: first comes the finding that tells why."""

from __future__ import annotations

import re
from collections.abc import Collection

from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.core.end import End
from torchtriage.core.evidence import Evidence, Outcome, Place
from torchtriage.core.fault import Severity
from torchtriage.core.finding import Finding
from torchtriage.core.plain import plain
from torchtriage.examine.artefact.logs import read_crashes
from torchtriage.examine.artefact.logs.marks import CAUSE, tier_of
from torchtriage.examine.detector import perform
from torchtriage.examine.run.job.events import Ended, Exit
from torchtriage.examine.run.reader.endings import end_without_error
from torchtriage.examine.run.record import RunRecord
from torchtriage.examine.run.record.crash import Crash
from torchtriage.triage import detectors
from torchtriage.triage.messages import decoded

_OF_VALUES = frozenset({"nan-loss", "loss-exploding"})
"""Symptoms: a fault that explains one of them makes values that are no numbers, or far too large."""
_OF_MEMORY, _OF_RANKS = "out-of-memory", "distributed-failing"
"""Symptoms: of a fault that explains them, SIGKILL or a rank's signal may be the consequence."""
_OTHER = 2
"""The rank of findings that do not tell why the job ended."""
_TYPES = frozenset({"OverflowError", "FloatingPointError", "ZeroDivisionError", "LinAlgError"})
_WORDS = re.compile(
    r"\b_?(?:nan|inf|infinite|isfinite|isnan|isinf|non-?finite|not finite|overflow\w*|diverg\w*)\b", re.I
)


def ending(record: RunRecord) -> tuple[tuple[Outcome, ...], End | None]:
    """What the errors in RECORD say, as a log with them would say it, and how the job ended badly, if it did."""
    code, step = record.ended.code, record.step
    failed = _relevant(record) if code or not record.notes.has(Ended) else ()
    if not failed:
        is_by_hand = any(each.is_by_hand for each in record.crashes)
        return (), None if is_by_hand else end_without_error(record.notes, record.ended, step)
    logs = read_crashes(failed, decoded)
    # where only peers are missing, the record of the ranks says who began it, and the messages add nothing
    is_first = logs.cause is not None and logs.cause.tier == CAUSE
    looks = tuple(detectors("readings", "torchtriage.examine.artefact.logs")) if is_first else ()
    outcomes = tuple(perform(looks, logs))
    end = logs.end or end_without_error(record.notes, record.ended, step)
    return outcomes, replace(end, code=code or end.code, is_trained=step is not None) if end else None


def _relevant(record: RunRecord) -> tuple[Crash, ...]:
    """The errors that may have ended the job.

    Where its first process chose to exit, or failed by itself and not for a child, what failed in a helper that trained
    nothing was handled there: programs try an import or a device in a child first.
    """
    errors = [each for each in record.crashes if not each.is_by_hand]
    main = record.ended.pid
    own = next((each for each in errors if main and each.pid == main), None)
    chose = main is not None and any(each.pid == main for each in record.notes.all(Exit))
    if chose or (own is not None and tier_of(f"{own.type}: {own.message}") == CAUSE):
        errors = [each for each in errors if each.is_of_rank or each is own]
    return tuple(errors)


def led(case: Case, end: End | None) -> Case:
    """CASE with END among its measurements, and the finding that tells why first.

    Where a special case of what the message means is found too, it replaces the general fault.
    """
    if end is None:
        return case
    refined = {slug for each in case.findings for slug in each.fault.refines}
    kept = [each for each in case.findings if each.fault.slug not in refined or not _is_said(each, end)]
    general = {each.fault.slug for each in case.findings} - {each.fault.slug for each in kept}
    findings = sorted(kept, key=lambda finding: _rank(finding, end, general))
    cause = findings[0].fault.slug if findings and _rank(findings[0], end, general) < _OTHER else ""
    ended = plain(replace(end, cause=cause))
    return replace(case, findings=tuple(findings), measurements={**case.measurements, "end": ended})


def _rank(finding: Finding, end: End, general: Collection[str]) -> int:
    """How near FINDING is to why the job ended, 0 the nearest, _OTHER where it is not about that.

    0: it made the values that an error of values complains of, or used up the memory before SIGKILL. 1: it is about the
    job as a whole at the moment of a signal, what the message means, or the special case of it that stands for one of
    GENERAL.
    """
    explains = finding.fault.explains if finding.fault.severity is Severity.ERROR else ()
    if _OF_VALUES.intersection(explains) and (_is_of_values(end) or _is_of_the_step(finding, end)):
        return 0
    if end.type == "SIGKILL" and _OF_MEMORY in finding.fault.explains and _is_growth(finding):
        return 0
    if _is_by_signal(end) and explains and any(_is_of_the_end(each, end) for each in finding.evidence):
        return 1
    rank = end.place.rank if end.place else None
    if end.kind == "signal" and rank is not None and _OF_RANKS in explains:
        return 1 if any(each.place.rank == rank for each in finding.evidence) else _OTHER
    if _OF_RANKS in explains and tier_of(f"{end.type}: {end.message}") != CAUSE and _is_of_the_step(finding, end):
        return 1  # a peer that was waited for, and the record says why it did not come
    return 1 if set(general).intersection(finding.fault.refines) or _is_said(finding, end) else _OTHER


def _is_by_signal(end: End) -> bool:
    """Also by a handler of the program's own, or a shell: they end with 128 + the number of the signal."""
    return end.kind == "signal" or (end.kind == "exit" and (end.code or 0) > 128)


def _is_of_the_end(evidence: Evidence, end: End) -> bool:
    """Whether EVIDENCE is about the job as a whole, which has no line, at the moment of its end."""
    step = end.place.step if end.place else None
    return evidence.place in (end.place, Place(step=step))


def _is_of_the_step(finding: Finding, end: End) -> bool:
    """Whether the run saw FINDING in the very step that the job ended in."""
    step = end.place.step if end.place else None
    return step is not None and any(
        each.place.step == step and each.detector.startswith("run/") for each in finding.evidence
    )


def _is_growth(finding: Finding) -> bool:
    """Whether memory was seen to grow step by step, to the end: who sends SIGKILL then is most often the kernel."""
    return any(each.detector.startswith("run/") and each.unit == "KiB per step" for each in finding.evidence)


def _is_said(finding: Finding, end: End) -> bool:
    """Whether the message that ended the job shows FINDING, or allows for it and the record shows it."""
    said = [each for each in finding.evidence if each.detector.startswith("log/")]
    is_at_the_end = any(each.place == end.found_at for each in said)
    return is_at_the_end or (
        finding.fault.slug in end.faults and any(_is_of_the_job(each) for each in finding.evidence)
    )


def _is_of_values(end: End) -> bool:
    """Whether values that are no numbers, or far too large, may have ended the job: a range error, a check, an exit."""
    line = (end.place.anchor or "") if end.place else ""
    return end.kind == "exit" or end.type.lstrip("_") in _TYPES or bool(_WORDS.search(f"{end.message}\n{line}"))


def _is_of_the_job(evidence: Evidence) -> bool:
    return evidence.detector.startswith(("log/", "run/"))

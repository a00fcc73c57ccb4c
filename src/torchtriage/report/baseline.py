"""The findings that a project lives with: written down once, and not shown again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.core.errors import TriageError
from torchtriage.core.plain import SCHEMA, written


class Known(Struct, frozen=True):
    """count findings of one fingerprint; fault and path are for whoever reads the file."""

    fault: str
    path: str | None
    fingerprint: str
    count: int


class Baseline(Struct, frozen=True):
    """The file."""

    schema: int
    findings: tuple[Known, ...]


def render(case: Case) -> str:
    """The findings of CASE as a baseline; the same case gives the same bytes."""
    found = Counter((each.fault.slug, each.evidence[0].place.path, each.fingerprint) for each in case.findings)
    known = [Known(*key, count) for key, count in sorted(found.items(), key=lambda item: tuple(map(str, item[0])))]
    return written(Baseline(SCHEMA, tuple(known)))


def read(path: Path) -> Baseline:
    """Raises TriageError where PATH is no baseline that can be read."""
    do = f"Write it with: torchtriage check … --write-baseline {path}"
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Baseline)
    except OSError as error:
        raise TriageError(f"the baseline cannot be read: {error.strerror}", str(path), do) from error
    except (msgspec.DecodeError, ValueError) as error:
        raise TriageError(f"no baseline: {error}", str(path), do) from error
    if found.schema != SCHEMA:
        raise TriageError(f"a baseline with schema {found.schema}, not {SCHEMA}", str(path), do)
    return found


def beyond(case: Case, baseline: Baseline) -> Case:
    """CASE with those findings only that BASELINE does not know; of equal ones as many as there are more."""
    left = Counter({each.fingerprint: each.count for each in baseline.findings})
    new = []
    for finding in case.findings:
        left[finding.fingerprint] -= 1
        if left[finding.fingerprint] < 0:
            new.append(finding)
    return replace(case, findings=tuple(new))

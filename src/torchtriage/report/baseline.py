"""The findings that a project lives with: written down once, and not shown again."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.core.errors import TriageError
from torchtriage.core.finding import Finding
from torchtriage.core.plain import SCHEMA, written
from torchtriage.core.some import some


class Known(Struct, frozen=True):
    """count findings of one fingerprint; fault and path are for whoever reads the file.

    path: from the folder of the baseline, so that it does not matter from where and how the code is named.
    """

    fault: str
    path: str | None
    fingerprint: str
    count: int


class Baseline(Struct, frozen=True):
    """The file."""

    schema: int
    findings: tuple[Known, ...]


def render(case: Case, folder: Path) -> str:
    """The findings of CASE as a baseline that lies in FOLDER; the same case gives the same bytes."""
    near = [_from(folder, each) for each in case.findings]
    found = Counter((each.fault.slug, each.evidence[0].place.path, each.fingerprint) for each in near)
    known = [Known(*key, count) for key, count in sorted(found.items(), key=lambda item: tuple(map(str, item[0])))]
    return written(Baseline(SCHEMA, tuple(known)))


def read(path: Path) -> Baseline:
    """Raises TriageError where PATH is no baseline that can be read."""
    do = f"Write it with: torchtriage check … --write-baseline {path}"
    if path.exists() and not path.is_file():
        raise TriageError("a baseline that is no file", str(path), do)
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Baseline)
    except OSError as error:
        raise TriageError(f"the baseline cannot be read: {error.strerror}", str(path), do) from error
    except (msgspec.DecodeError, ValueError) as error:
        raise TriageError(f"no baseline: {error}", str(path), do) from error
    if found.schema != SCHEMA:
        raise TriageError(f"a baseline with schema {found.schema}, not {SCHEMA}", str(path), do)
    return found


def _from(folder: Path, finding: Finding) -> Finding:
    """FINDING with its first place as seen from FOLDER."""
    first, *others = finding.evidence
    if first.place.path is None or first.place.path == "-":
        return finding
    path = Path(os.path.relpath(first.place.path, folder)).as_posix()
    return replace(finding, evidence=some([replace(first, place=replace(first.place, path=path)), *others], "evidence"))


def beyond(case: Case, baseline: Baseline, folder: Path) -> Case:
    """CASE with those findings only that BASELINE in FOLDER does not know; of equal ones as many as there are more."""
    left = Counter({each.fingerprint: each.count for each in baseline.findings})
    new = []
    for finding in case.findings:
        mark = _from(folder, finding).fingerprint
        left[mark] -= 1
        if left[mark] < 0:
            new.append(finding)
    return replace(case, findings=tuple(new))

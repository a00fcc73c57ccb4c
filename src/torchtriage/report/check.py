"""What `check` prints beside its findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from torchtriage.core.case import Case, finding_as_dict
from torchtriage.core.finding import Finding
from torchtriage.core.plain import SCHEMA, number, plain, within, written
from torchtriage.report.places import by_file, joined
from torchtriage.report.text import count, line, sentence

_LOUDEST = ("error", "warning", "info")


def files(case: Case) -> int:
    """How many files were examined."""
    return int(number(within(case.measurements, "files")) or 0)


def render(case: Case) -> str:
    """CASE in the shape of `check --json`."""
    return written(
        {
            "schema": SCHEMA,
            "findings": [_as_dict(group) for group in by_file(case.findings)],
            "inconclusive": plain(case.inconclusive),
            "files": files(case),
        }
    )


def _as_dict(group: Sequence[Finding]) -> dict[str, Any]:
    """One fault in one file. Each of its places has the fingerprint by which a baseline knows it."""
    row = finding_as_dict(joined(group))
    marks = [finding.fingerprint for finding in group for _ in finding.evidence]
    row["evidence"] = [{**item, "fingerprint": mark} for item, mark in zip(row["evidence"], marks, strict=True)]
    return row


def counted(case: Case) -> str:
    """5 findings (1 error, 4 warnings) at 9 places: a finding is one fault in one file."""
    groups = by_file(case.findings)
    loud = Counter(group[0].fault.severity.value for group in groups)
    shares = ", ".join(
        count(loud[each], each) if each != "info" else f"{loud[each]} info" for each in _LOUDEST if loud[each]
    )
    text = count(len(groups), "finding") + (f" ({shares})" if len(groups) > 1 else "")
    return text + (f" at {len(case.findings)} places" if len(case.findings) > len(groups) else "")


def summary(case: Case, whole: bool, hidden: int = 0) -> str:
    """How much was found; as a WHOLE also every reason why something could not be told.

    HIDDEN: how many findings a baseline knows.
    """
    unseen, silenced = case.inconclusive, int(number(within(case.measurements, "silenced")) or 0)
    text = f"{counted(case)} in {count(files(case), 'file')}"
    text += f"; {hidden} known to the baseline" if hidden else ""
    text += f"; {silenced} silenced by comments" if silenced else ""
    text += f"; {count(len({item.detector for item in unseen}), 'check')} inconclusive" if unseen else ""
    rows = [f"not seen by {line(item.detector)}: {sentence(item.why)} {sentence(item.unblock)}" for item in unseen]
    return "\n".join([f"{text}.", *(rows if whole else ())])

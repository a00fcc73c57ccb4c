"""What `check` prints beside its findings."""

from __future__ import annotations

from torchtriage.core.case import Case, finding_as_dict
from torchtriage.core.plain import SCHEMA, number, plain, within, written
from torchtriage.report.text import count, line, sentence


def files(case: Case) -> int:
    """How many files were examined."""
    return int(number(within(case.measurements, "files")) or 0)


def render(case: Case) -> str:
    """CASE in the shape of `check --json`."""
    return written(
        {
            "schema": SCHEMA,
            "findings": [finding_as_dict(finding) for finding in case.findings],
            "inconclusive": plain(case.inconclusive),
            "files": files(case),
        }
    )


def summary(case: Case, whole: bool, hidden: int = 0) -> str:
    """How much was found; as a WHOLE also every reason why something could not be told.

    HIDDEN: how many findings a baseline knows.
    """
    unseen, silenced = case.inconclusive, int(number(within(case.measurements, "silenced")) or 0)
    text = f"{count(len(case.findings), 'finding')} in {count(files(case), 'file')}"
    text += f"; {hidden} known to the baseline" if hidden else ""
    text += f"; {silenced} silenced by comments" if silenced else ""
    text += f"; {count(len(unseen), 'look')} inconclusive" if unseen else ""
    rows = [f"not seen by {line(item.detector)}: {sentence(item.why)} {sentence(item.unblock)}" for item in unseen]
    return "\n".join([f"{text}.", *(rows if whole else ())])

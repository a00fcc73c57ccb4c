"""Traces of which nothing was read: what is judged without them is named as such."""

from __future__ import annotations

from collections.abc import Sequence

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.artefact.engines import Told
from torchtriage.examine.artefact.trace.fewer import MANY, fewer

NAME = "trace/record"


def unread(paths: Sequence[str], told: Sequence[Told]) -> tuple[Inconclusive, ...]:
    """One row for those that were lost, one for each that could not be opened; of very many, one for all."""
    found = list(zip(paths, told, strict=True))
    others = [Inconclusive(NAME, f"{path}: {each.why}", each.do) for path, each in found if each.why and not each.lost]
    lost = [(path, each) for path, each in found if each.lost]
    if not lost:
        return fewer(others)
    shown = ", ".join(path for path, _ in lost[:MANY]) + (f" and {len(lost) - MANY} more" if len(lost) > MANY else "")
    why = f"partial: {len(lost)} of {len(paths)} traces were not read, and the rest is judged without them: {shown} "
    first = lost[0][1]
    return Inconclusive(NAME, f"{why}({first.why})", first.do), *fewer(others)

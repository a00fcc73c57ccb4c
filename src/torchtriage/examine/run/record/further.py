"""The other places of what was seen: where a thing was built, who called, where a call is missing."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting
from torchtriage.examine.run.job.events import Further


def further(seen: Sighting, others: Further) -> Iterator[Sighting]:
    """SEEN, then a sighting at each of the OTHERS that is another line."""
    yield seen
    told = {(seen.place.path, seen.place.line)}
    for says, path, line in others:
        if line and (path, line) not in told:
            told.add((path, line))
            yield replace(seen, place=Place(path=path or None, line=line, rank=seen.place.rank), fact=says)

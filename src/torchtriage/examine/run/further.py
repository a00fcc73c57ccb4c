"""The other places of what was seen: where a thing was built, who called, where a call is missing."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting
from torchtriage.examine.run.record import Event


def further(seen: Sighting, event: Event) -> Iterator[Sighting]:
    """SEEN, and the same at each further place of EVENT, of which it tells what stands there, its file and its line."""
    yield seen
    told = {(seen.place.path, seen.place.line)}
    for says, path, line in event.get("further") or ():
        if line and (path, line) not in told:
            told.add((path, line))
            yield replace(seen, place=Place(path=path or None, line=line, rank=seen.place.rank), fact=says)

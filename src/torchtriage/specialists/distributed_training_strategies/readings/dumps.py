"""What the ranks' Flight Recorder dumps say about a job that stands still: read as a run's own record is."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from torchtriage.core.evidence import Place
from torchtriage.examine.artefact.flight import Dumps
from torchtriage.examine.detector import Sighting, detector

from .hangs import collective_on_some_ranks as of_a_run


@detector("dump/collective-on-some-ranks")
def collective_on_some_ranks(dumps: Dumps) -> Iterator[Sighting]:
    """Some ranks wait in a collective that others have not asked for, or have asked for in another way."""
    for seen in of_a_run.look(dumps.record):
        yield replace(seen, place=_place(seen.place, dumps))


def _place(seen: Place, dumps: Dumps) -> Place:
    """A dump counts no steps; where it knows no line, it is the place itself."""
    return replace(seen, step=None, path=seen.path or dumps.paths.get(seen.rank if seen.rank is not None else -1))

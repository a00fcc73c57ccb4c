"""What a record says about sources of randomness that nobody has seeded."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.checkpointing_and_reproducibility.probes.events import Loose

HARMLESS = """
    port show plot print log logging picture pictures figure sleep wait retry backoff demo preview visualize visualise
    display tmp temp
"""  # what is drawn on lines with such names changes no result
NAMES = {"random": "Python's random", "numpy": "NumPy's global generator", "torch": "torch's generator"}


@detector("run/seeds-incomplete")
def seeds_incomplete(record: RankRecord) -> Iterator[Sighting]:
    """The job seeds some source of randomness and draws from another that nobody has seeded."""
    for event in record.all(Loose):
        where = _at(event)
        if where is None:
            continue
        by = " and ".join(NAMES[each] for each in event.seeded if each in NAMES)
        name = NAMES[event.source]
        fact = f"{name} moved during the training, and nobody has seeded it, only {by}: runs with one seed differ"
        yield Sighting(Place(path=where[0], line=where[1], rank=record.rank), fact, float(event.moved), "looks")


def _at(event: Loose) -> tuple[str | None, int] | None:
    """The line that draws; for torch, whose every layer draws, the last line that seeds; None for what may be meant."""
    if event.source == "torch":  # who seeds one source only may mean to fix the data, and nothing else
        return (event.path, event.line) if {"random", "numpy"} <= set(event.claims) else None
    line, words = event.draws.get("line"), event.draws.get("words", ())
    if "torch" not in event.seeded or event.draws.get("seeds") or not line or set(HARMLESS.split()) & set(words):
        return None
    return event.draws.get("path"), line

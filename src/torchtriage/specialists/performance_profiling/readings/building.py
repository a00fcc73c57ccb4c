"""What a record says about things that are built in every step."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.performance_profiling.probes.events import Built
from torchtriage.specialists.performance_profiling.readings.lines import caller

ENOUGH = 20  # steps in which it was built: built-in-loop.md defends both
NEARLY = 0.9  # of the steps since it was first built
COSTS = 0.05  # of their time, for moving a module that is there already
OF_A_BATCH = ("LBFGS",)  # what such an optimizer remembers is about one batch


@detector("run/built-in-loop", timed=True)
def built_in_loop(record: RankRecord) -> Iterator[Sighting]:
    """Something that is built once for a training is built in nearly every step."""
    for event, said in built(record):
        place = Place(path=event.path or None, line=event.line or None, rank=record.rank, step=event.since)
        share = event.steps / event.over
        yield Sighting(place, f"{said} in {event.steps} of {event.over} steps", share, "of the steps")
        for path, line in caller(event):
            where = Place(path=path, line=line, rank=record.rank)
            yield Sighting(where, "this asks for what is built", share, "of the steps")


def built(record: RankRecord) -> Iterator[tuple[Built, str]]:
    """The lines that build in nearly every step, as they were last written down, and what each builds."""
    latest = {(event.what, event.path, event.line): event for event in record.all(Built)}
    for event in latest.values():
        said = _SAID[event.what](event)
        if said is not None and event.steps >= max(ENOUGH, NEARLY * event.over):
            yield event, said


def _optimizer(event: Built) -> str | None:
    """Over the same parameters of a model, which were not restored in between, with a state that is lost."""
    every, turns = NEARLY * (event.times - 1), NEARLY * (event.steps - 1)  # a property builds at each look
    if event.name in OF_A_BATCH or event.same < every or event.kept < turns or event.module is None:
        return None
    if event.restored > event.steps / 2:
        return None
    return f"{event.name} over the same parameters is built anew, and forgets its state,"


def _loader(event: Built) -> str | None:
    """While another loader delivers, or given up before its end: a loader for each epoch does neither."""
    if max(event.beside, event.abandoned) < NEARLY * (event.steps - 1):
        return None
    return f"a DataLoader({event.name}) is built, and starts its workers,"


def _compiled(event: Built) -> str | None:
    return f"{event.name} is compiled anew" if event.same >= NEARLY * (event.times - 1) else None


def _moved(event: Built) -> str | None:
    """A module that is taken away in between comes back on purpose."""
    share = event.seconds / event.elapsed if event.elapsed else 0.0
    if event.same < NEARLY * event.times or share < COSTS:
        return None
    return f"{event.name} is moved to where it is, which takes {share:.0%} of the time,"


_SAID = {"optimizer": _optimizer, "loader": _loader, "compiled": _compiled, "moved": _moved}

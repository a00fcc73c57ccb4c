"""What a record says about the order of a GradScaler's calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Error
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.mixed_precision_and_optimization.probes.events import (
    Recurrence,
    ScalerBypassed,
    ScalerRaised,
    ScalerRenewed,
    ScalerStepped,
    UnscaledAdded,
)

ONCE = 1.0  # a scale that changes nothing
LATE_STEP = "step() has already been called"
LATE_UNSCALE = "being called after step()"
TWICE = "unscale_() has already been called"
NOTHING_ASKED = "No inf checks were recorded prior to update"
NEVER_SCALED = "_scale is None"


@detector("run/scaler-bypassed")
def scaler_bypassed(record: RankRecord) -> Iterator[Sighting]:
    """An optimizer stepped on gradients that are still scaled, or a scaler divided gradients that never were."""
    told = {(event.how, event.path, event.line): event for event in record.all(ScalerBypassed)}
    firsts = {(event.how, event.path, event.line): event for event in reversed(record.all(ScalerBypassed))}
    for key, event in told.items():
        if event.scale != ONCE:
            yield Sighting(_place(record, firsts[key]), _bypass(event), float(event.times), "times")
    if not told:
        for raised in record.all(ScalerRaised):
            if NEVER_SCALED in raised.message and raised.whole and raised.backwards:
                fact = f"scaler.{raised.call} was called although no loss was ever scaled: {raised.message}"
                yield Sighting(_place(record, raised), fact)
                return


def _bypass(event: ScalerBypassed) -> str:
    times = "" if event.times == 1 else f", at least {event.times} times"
    scale = "" if event.scale is None else f" (the scale was {event.scale:g})"
    if event.how == "step":
        return f"{event.optimizer} stepped by itself, past the scaler, on gradients of a scaled loss{times}{scale}"
    whence = "to which a loss that was not scaled had added" if event.mixed else "of a loss that was not scaled"
    return f"the scaler stepped {event.optimizer} and divided its gradients, {whence}{times}{scale}"


@detector("run/scaler-not-updated")
def scaler_not_updated(record: RankRecord) -> Iterator[Sighting]:
    """The scaler stepped or unscaled an optimizer again before an update."""
    # where no probe of scalers watched, the error that ended the job: of a second unscale_ it does not tell enough
    errors: Sequence[ScalerRaised | Error] = record.all(ScalerRaised) or record.all(Error)
    for event in errors:
        message, stepped, twice = event.message, ("", 0), False
        if isinstance(event, ScalerRaised):
            stepped, twice = event.stepped, TWICE in message and not event.added
        if not twice and LATE_STEP not in message and LATE_UNSCALE not in message:
            continue
        what = "unscaled twice in one step" if twice else "not updated after this step"
        raised = f"{event.error} at {event.path}:{event.line}: {message}"
        for path, line in [] if twice else _steps(record, *stepped):
            place = Place(path=path, line=line, rank=record.rank, step=event.step)
            yield Sighting(place, f"the scaler was {what}: {raised}")
        told = f"the scaler was {what}: {raised}" if twice else f"without an update before, this raised {message}"
        yield Sighting(_place(record, event), told)
        return
    for renewed in record.all(ScalerRenewed):
        fact = f"{renewed.steps} steps through scalers with no update() in between: each time another, new scaler"
        yield Sighting(_place(record, renewed), fact, float(renewed.steps), "steps")
        return


def _steps(record: RankRecord, path: str, line: int) -> list[tuple[str, int]]:
    """The line of the step that no update followed: this one, or if unknown the only one from which a scaler steps."""
    known = [(each.path, each.line) for each in record.all(ScalerStepped)]
    found = [(path, line)] if line else known if len(known) == 1 else []
    return [each for each in found if each[1]]


@detector("run/scaler-touched-mid-accumulation")
def scaler_touched_mid_accumulation(record: RankRecord) -> Iterator[Sighting]:
    """A scaler unscaled or updated in the middle of an accumulation."""
    for added in record.all(UnscaledAdded):
        fact = f"a scaled backward added to gradients that unscale_ had already divided after {added.parts} of them"
        yield Sighting(_place(record, added), fact)
        return
    for event in record.all(ScalerRaised):
        nobody_asked = event.whole and event.backwards and not event.asked and not event.direct
        if (TWICE in event.message and event.added) or (NOTHING_ASKED in event.message and nobody_asked):
            fact = f"scaler.{event.call} in an iteration that does not step: {event.error}: {event.message}"
            yield Sighting(_place(record, event), fact)
            return


def _place(record: RankRecord, event: Recurrence | Error) -> Place:
    return Place(path=event.path or None, line=event.line or None, rank=record.rank, step=event.step)

"""What a record says about the formats that a job trains in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeVar

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Error, replace
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.record.further import further
from torchtriage.specialists.mixed_precision_and_optimization.probes.events import (
    AutocastBackward,
    AutocastUnused,
    AutocastUsed,
    Cast,
    HalfMoved,
    HalfTrained,
    Recurrence,
    ScaledBfloat16,
    UnscaledFloat16,
)

R = TypeVar("R", bound=Recurrence)
_FORMATS = re.compile(r"(?i)\b(half|bfloat16|float(?:16|32|64)?|double)(?:tensor)?\b")  # in messages of torch
_SPELT = {"half": "float16", "float": "float32", "double": "float64"}
AGAIN = 3  # times that make a habit of what may have happened once


@detector("run/scaler-missing")
def scaler_missing(record: RankRecord) -> Iterator[Sighting]:
    """An optimizer steps on gradients of a float16 graph that nothing has scaled."""
    for event in _habits(record, UnscaledFloat16):
        off = ": the GradScaler that takes the step is switched off" if event.off else ""
        fact = (
            f"{event.cast} of {event.of} parameters of {event.optimizer} were used in float16, and it stepped "
            f"on their gradients {event.times} times though no loss was scaled{off}"
        )
        yield from further(Sighting(_place(record, event), fact, float(event.times), "steps"), event.further)


@detector("run/scaler-with-bf16")
def scaler_with_bf16(record: RankRecord) -> Iterator[Sighting]:
    """A GradScaler scales losses whose graphs hold bfloat16 and no float16."""
    for event in _habits(record, ScaledBfloat16):
        fact = f"the scaler took {event.times} steps on losses computed in bfloat16: no tensor was float16"
        yield Sighting(_place(record, event), fact, float(event.times), "steps")


@detector("run/autocast-without-effect")
def autocast_without_effect(record: RankRecord) -> Iterator[Sighting]:
    """The model runs with autocast on, and no tensor of its graph is in the shorter format."""
    if record.has(AutocastUsed):
        return
    for event in _habits(record, AutocastUnused):
        fact = (
            f"autocast to {event.format} was on, and the {event.products} matrix products of the graph stayed in "
            f"{', '.join(event.found)}, in {event.times} passes that were looked at"
        )
        yield Sighting(_place(record, event), fact, float(event.times), "passes")


@detector("run/backward-in-autocast")
def backward_in_autocast(record: RankRecord) -> Iterator[Sighting]:
    """A backward pass begins while autocast is on."""
    events = record.all(AutocastBackward)
    if events:
        first, last = events[0], events[-1]
        fact = f"backward began with autocast to {first.format} still on, {last.times} times"
        yield Sighting(_place(record, first), fact, float(last.times), "times")


@detector("run/half-model-trained")
def half_model_trained(record: RankRecord) -> Iterator[Sighting]:
    """An optimizer of torch updates parameters that are float16 themselves."""
    event, moved = record.first(HalfTrained), record.all(HalfMoved)
    if event is not None:
        fact = f"{event.trained} of {event.of} parameters that {event.optimizer} trains are float16"
        if event.refused:
            fact += ", whose gradients a GradScaler refuses"
        elif moved:
            share = sum(each.share for each in moved) / len(moved)
            fact += f"; a step changed {share:.0%} of the weights of {moved[0].parameter} that had a gradient"
        fact += "" if event.cast else "; where they were cast was not seen"
        yield Sighting(_place(record, event, event.first), fact)


@detector("run/dtype-mismatch")
def dtype_mismatch(record: RankRecord) -> Iterator[Sighting]:
    """A module was cast to the one of two types that the error names, and its input was not."""
    error = record.first(Error)
    message = error.message if error is not None and error.error == "RuntimeError" else ""
    said = (each.lower() for each in _FORMATS.findall(message))
    named = {str(_SPELT.get(each, each)) for each in said}
    for event in record.all(Cast) if len(named) > 1 else ():
        if event.format in named:
            place = Place(path=event.path or None, line=event.line or None, rank=record.rank)
            fact = f"{event.module} was cast to {event.format} here; the error names {' and '.join(sorted(named))}"
            yield Sighting(place, fact)


def _habits(record: RankRecord, kind: type[R]) -> list[R]:
    """The last event of each line that did it often enough, with the step of the first."""
    first: dict[tuple[str, int, str], int] = {}
    last: dict[tuple[str, int, str], R] = {}
    for event in record.all(kind):
        key = (event.path, event.line, event.optimizer if isinstance(event, UnscaledFloat16) else "")
        last[key] = replace(event, step=first.setdefault(key, event.step))
    return [event for event in last.values() if event.times >= AGAIN]


def _place(record: RankRecord, event: Recurrence | HalfTrained, module: str | None = None) -> Place:
    path, line = event.path or None, event.line or None
    return Place(path=path, line=line, rank=record.rank, step=event.step, module=module)

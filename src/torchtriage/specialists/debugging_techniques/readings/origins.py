"""What a record says about the first number that is not finite."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Batch, NonFinite, Skip, Unfilled
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.record.further import further
from torchtriage.specialists.debugging_techniques.probes.events import Refused
from torchtriage.specialists.debugging_techniques.readings import seen
from torchtriage.specialists.debugging_techniques.readings.gradients import gradients_exploding

LONG = 20  # steps after which no scaler is looking for its first scale any more
SEVERAL = 2  # batches that were left aside
SOON, HUGE = 3, 1e10  # steps; the size of a parameter that no filling gives
FEW, OFTEN = 3, 0.1  # steps, and their share, that are skipped later still


@detector("run/non-finite-origin")
def non_finite_origin(record: RankRecord) -> Iterator[Sighting]:
    """The first loss or gradient that is not finite, and the operation that made it."""
    seen.anything_learned(record)
    for event in record.all(NonFinite):
        if _brought_in(event) or (seen.overflowed(event) and any(gradients_exploding.look(record))):
            continue  # the batch is the fault, not the operation that met it; or what made all numbers grow is
        step = _step(event)
        if seen.too_narrow(event) and _held_back(record, step):
            continue  # the format is too narrow, and the scale falls for it: that is told with this place
        if step < SOON and _unfilled(record):
            continue  # what nobody filled is told by its own name
        module = None if event.stage == "input" else event.module
        place = Place(event.path or None, event.line or None, rank=record.rank, step=step, module=module)
        fact = f"{_seen(event)} is not finite at step {step}: {_STORIES[event.stage](event)}"
        yield from further(Sighting(place, fact), event.further)


@detector("run/input-not-finite")
def input_not_finite(record: RankRecord) -> Iterator[Sighting]:
    """The batch that made the loss or a gradient NaN held NaN or infinity itself."""
    for event in record.all(NonFinite):
        if batch := _brought_in(event):
            place = Place(event.path or None, event.line or None, rank=record.rank, step=_step(event))
            yield from in_batch(batch, place, f"{_seen(event)} is not finite at step {place.step}")
            return
    for refused in record.all(Refused)[-1:]:
        if refused.times >= SEVERAL:
            place = Place(rank=record.rank, step=refused.at)
            says = f"the model gave NaN, and {refused.times} such batches were left aside"
            yield from in_batch(refused.batch, place, says)


def in_batch(batch: Batch, place: Place, then: str) -> Iterator[Sighting]:
    """That BATCH held what is not finite, and what came of it, at a PLACE if no loader gave it."""
    if batch.get("line"):
        place = replace(place, path=batch.get("path") or None, line=batch.get("line"))
    wrong = batch["tensors"][0]
    which = (
        "what the model was given" if batch["index"] is None else f"batch {batch['index']} of {batch.get('dataset')}"
    )
    share = wrong["bad"] / wrong["of"]
    fact = f"{which} held {wrong['value']} before anything was computed: {wrong['bad']} of {wrong['of']} values of "
    fact += f"{wrong['name']} ({share:.2g}), in samples {', '.join(map(str, wrong['samples']))}; {then}"
    yield from further(Sighting(place, fact, share, "of the values"), batch.get("further", ()))


def _step(event: NonFinite) -> int:
    return event.step if event.at is None else event.at


def _unfilled(record: RankRecord) -> bool:
    """Whether a parameter held what was left in its memory, and that is no number to compute with."""
    return any(event.finite < event.of or event.largest > HUGE for event in record.all(Unfilled))


def _brought_in(event: NonFinite) -> Batch | None:
    """The batch, where it held what is not finite, and no operation made it from finite inputs."""
    return event.batch if event.stage not in {"forward", "parameter"} else None


def _held_back(record: RankRecord, since: int) -> bool:
    """Whether a scaler has gone on skipping steps, with an ever lower scale, long after step SINCE."""
    later = [step for step in record.every_step if step.step >= since + LONG]
    scales = [event.scale for event in record.all(Skip) if event.step >= since]
    skipped = sum(bool(step.skipped) for step in later)
    return skipped >= max(FEW, OFTEN * len(later)) and scales[-1:] < scales[:1]


def _seen(event: NonFinite) -> str:
    if event.seen == "gradient":
        return f"the gradient of {event.bad} of {event.of} parameters (nearest to the loss: {event.nearest})"
    return "the loss" if event.seen == "loss" else "the loss or a gradient"


def _forward(event: NonFinite) -> str:
    fact = f"{event.op} gave {event.value} in {_module(event)}, from inputs and parameters that were finite"
    if event.autocast is not None:
        fact += f"; without autocast ({event.autocast}) it {'gives the same' if event.persists else 'is finite'}"
    return fact


def _backward(event: NonFinite) -> str:
    return f"the derivative of {event.op} in {_module(event)} is not finite, though its forward values are"


def _parameter(event: NonFinite) -> str:
    return f"the parameter {event.parameter} was not finite before this step; {_module(event)} met it first"


def _input(event: NonFinite) -> str:
    return f"the input of {event.root} was not finite already: the batch itself, or what the script did to it"


def _loss(event: NonFinite) -> str:
    chain = ", of ".join(event.chain) or "an operation without a graph"
    return f"every module's output is finite; it arises in the loss computed from it ({chain}){_at(event)}"


def _unknown(event: NonFinite) -> str:
    return f"the operation could not be traced ({event.why}){_at(event)}"


def _at(event: NonFinite) -> str:
    """The one operation of the loss that is not defined, or has no finite slope, everywhere; if that is known."""
    return f"; {event.at_op} is called here, whose value or slope is not finite at zero" if event.at_op else ""


_STORIES = {
    "forward": _forward,
    "backward": _backward,
    "parameter": _parameter,
    "input": _input,
    "loss": _loss,
    "unknown": _unknown,
}


def _module(event: NonFinite) -> str:
    return event.root if event.module == event.root else f"{event.module} of {event.root}"

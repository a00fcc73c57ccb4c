"""What a record says about the sizes of gradients: over the depth of the model, and over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite, log10
from statistics import median
from typing import NamedTuple, TypeVar

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Further, GradNorm, NonFinite
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.record.further import further
from torchtriage.specialists.debugging_techniques.probes.events import Births, Carried, Layer, Layers, Units
from torchtriage.specialists.debugging_techniques.readings import seen

E = TypeVar("E", GradNorm, Layers)
DEEP = 6  # weights, at least: in a shallower model nothing can vanish along the way
FEW = 4  # weights, at least, of which all of the first two or more may have next to no gradient
GAP = 5.0  # powers of ten between those and all others
SURELY = 3.0  # powers of ten, as the sign of gradients-vanishing has it
PARTS = 3  # of the model that are named beside the first layer
LOOKS = 3  # at least, at the gradients of all layers
ORDERED = 0.8  # of all pairs of layers, at least, in which the earlier one has the smaller gradient
BEGIN = 5  # norms at the start of a run that tell its usual size, and at the end that tell where it went
RISE = 1000.0  # times: gradients-exploding.md defends it
WORSE = 10.0  # times the loss at the start
NEARLY = 0.9  # of them


class Measure(NamedTuple):
    """value, unit and spread of a sighting."""

    value: float
    unit: str
    spread: tuple[float, float]


@detector("run/gradients-vanishing")
def gradients_vanishing(record: RankRecord) -> Iterator[Sighting]:
    """The gradients of the first layers are orders of magnitude below those of the last."""
    if any(dead_units.look(record)):
        return  # what stands before a dead layer gets no gradient
    for events in _by_optimizer(record.all(Layers)).values():
        # where signals shrink as gradients do, those of all weights are alike, and those of biases tell
        weights, biases = [(each, each.layers) for each in events], [(each, each.biases) for each in events]
        looks = max(weights, biases, key=lambda each: median(_fall(each) or [0.0]))
        if fallen := _fall(looks):
            last, layers = [each for each in looks if each[1]][-1]
            yield from _vanished(record, last, layers, fallen)


def _fall(looks: Sequence[tuple[Layers, Sequence[Layer]]]) -> list[float]:
    """In each look, the powers of ten by which gradients fall; empty where they do not in nearly all."""
    later = [layers for event, layers in looks if event.at and _passes(layers)]
    fallen = sorted(orders for layers in later if (orders := _orders(layers)) is not None)
    return fallen if len(fallen) >= max(LOOKS, 0.8 * len(later)) else []


def _vanished(record: RankRecord, last: Layers, layers: Sequence[Layer], fallen: Sequence[float]) -> Iterator[Sighting]:
    first, deepest, times = layers[0], layers[-1], 10 ** median(fallen)
    fact = f"the gradient of {first[0]} is {_rms(first):.1e} per weight, that of {deepest[0]} {_rms(deepest):.1e}: "
    fact += f"{times:.0e} times as much in the last third of {len(layers)} layers as in the first"
    spread = fallen[len(fallen) // 5], fallen[-1 - len(fallen) // 5]  # three fifths of the looks
    measure = Measure(median(fallen), "orders of magnitude", spread)
    sighting = Sighting(_place(record, last, _module(first[0])), fact, *measure)
    small = [layer[0] for layer in layers if 0 < _rms(layer) * 1e3 < _rms(deepest)] if spread[0] > SURELY else []
    names = dict.fromkeys(each for name in small for each in (name, f"{_module(name)}.weight"))
    filled = [line for name in names for line in _lines(record, name) if line[0].endswith("is filled here")]
    lines = [*_lines(record, first[0]), *filled[:1]] if spread[0] > SURELY else ()
    yield from further(sighting, lines)
    parts = dict.fromkeys(part for name in small for part in _parts(name) if part != sighting.place.module)
    for part in list(parts)[:PARTS]:
        says = f"{part} gets less than a thousandth of what {deepest[0]} gets"
        yield Sighting(Place(rank=record.rank, module=part), says, *measure)


@detector("run/gradients-exploding")
def gradients_exploding(record: RankRecord) -> Iterator[Sighting]:
    """The gradients' norm rose a thousand times or more, and the loss went with it."""
    if record.has(Carried):
        return  # gradients that pile up grow for a reason that has a name of its own
    losses = [abs(row.loss) for row in record.every_step if row.loss is not None]
    for optimizer, events in _by_optimizer(record.all(GradNorm)).items():
        values = [(event.at, event.value) for event in events]
        finite = [(at, value) for at, value in values if isfinite(value)]
        rise = _rise([value for _, value in finite], len(finite) < len(values))
        if rise is None or rise[1] < RISE * rise[0] or not _lost(losses, record, soon=len(finite) < 2 * BEGIN):
            continue
        usual, end = rise
        at = next(at for at, value in finite if value > 100 * usual)
        path, line = events[0].path or None, events[0].line or None
        layer = _grown(_by_optimizer(record.all(Layers)).get(optimizer, []))
        sighting = Sighting(
            Place(path=path, line=line, rank=record.rank, step=at, module=_module(layer[0]) if layer else None),
            f"the norm of the gradients rose from {usual:.3g} to {end:.3g}, past a hundred times the usual at step {at}"
            + (f"; most in {layer[0]} ({layer[1]:.0e} times)" if layer else ""),
            end / usual,
            "times",
        )
        lines = [line for event in record.all(Births) if event.optimizer == optimizer for line in event.further]
        yield from further(sighting, [*lines, *(_lines(record, layer[0]) if layer else ())])
        for part in _parts(layer[0]) if layer else ():
            if part != sighting.place.module:
                yield Sighting(Place(rank=record.rank, module=part), f"{part} holds it", end / usual, "times")


@detector("run/dead-units")
def dead_units(record: RankRecord) -> Iterator[Sighting]:
    """Nearly all outputs of a layer got no gradient in dozens of steps: whatever comes in, they give nothing on."""
    if record.has(NonFinite):
        return
    last = {event.layer: event for event in record.all(Units)}
    dead = [event for event in last.values() if event.dead >= NEARLY * event.of]
    # What comes after a dead layer is given zeros, and may be dead for that alone. What stands before it gets no
    # gradient: it counts as well when zeros are all that it gives, which is sure where what cuts it off was heard.
    dead.sort(key=lambda event: not event.after)
    for event in dead[:1]:
        share, fact = event.dead / event.of, f"{event.dead} of {event.of} outputs of {event.layer} were never positive "
        fact += f"and got no gradient in {event.over} steps up to step {event.at}"
        sighting = Sighting(_place(record, event, event.layer), fact, share, "of the layer's outputs")
        yield from further(sighting, event.further)
        others = [f"{each.layer} is dead as well" for each in dead[1 : 1 + PARTS]]
        others += [f"{event.after} gives nothing but zeros"] if event.after else []
        for says in others:
            yield Sighting(Place(rank=record.rank, module=says.split()[0]), says, share, "of the layer's outputs")


def _place(record: RankRecord, event: Layers | Units, module: str) -> Place:
    return Place(event.path or None, event.line or None, rank=record.rank, step=event.at, module=module)


def _by_optimizer(events: Sequence[E]) -> dict[int, list[E]]:
    found: dict[int, list[E]] = {}
    for event in events:
        found.setdefault(event.optimizer, []).append(event)
    return found


def _rms(layer: Layer) -> float:
    """The root mean square of a weight's gradient."""
    return float(layer[1] / layer[2] ** 0.5)


def _fallen(layers: Sequence[Layer]) -> float | None:
    """Powers of ten between the last and the first third of LAYERS; None where gradients do not rise with depth."""
    sizes = [_rms(layer) for layer in layers]
    if len(sizes) < DEEP or not all(isfinite(size) for size in sizes) or not max(sizes) > 0:
        return None
    least = min((size for size in sizes if size > 0), default=0.0)
    logs = [log10(max(size, least)) for size in sizes]
    pairs = [logs[i] < logs[j] for i in range(len(logs)) for j in range(i + 1, len(logs))]
    if sum(pairs) < ORDERED * len(pairs):
        return None
    third = len(logs) // 3
    return float(median(logs[-third:]) - median(logs[:third]))


def _passes(layers: Sequence[Layer]) -> bool:
    """Whether a gradient gets past the last of LAYERS: of one that was cut off nothing can be said, nor of a first step
    in which the last one is still zero.
    """
    return sum(bool(layer[1] > 0) for layer in layers) > 1


def _orders(layers: Sequence[Layer]) -> float | None:
    """Powers of ten by which the gradients fall towards the first layers; None where they do not."""
    fallen = _fallen(layers)
    return _cut(layers) if fallen is None else fallen


def _cut(layers: Sequence[Layer]) -> float | None:
    """Powers of ten between two parts of a model of a few LAYERS, where all of the first get next to nothing."""
    sizes = [_rms(layer) for layer in layers]
    if len(sizes) < FEW or not all(isfinite(size) and size > 0 for size in sizes):
        return None
    logs = [log10(size) for size in sizes]
    gaps = [(min(logs[at:]) - max(logs[:at]), at) for at in range(2, len(logs))]
    gap, at = max(gaps)
    return float(median(logs[at:]) - median(logs[:at])) if gap >= GAP else None


def _rise(norms: Sequence[float], ended: bool) -> tuple[float, float] | None:
    """The usual norm at the start and that at the end, or before the first that was not finite, where that ENDED it."""
    if len(norms) >= 2 * BEGIN:
        return _positive(median(norms[:BEGIN]), norms[-1] if ended else _end(norms))
    if ended and len(norms) > 1 and norms[-1] == max(norms):
        return _positive(norms[0], norms[-1])
    return None


def _end(values: Sequence[float]) -> float:
    """Where VALUES went: the usual one of the last, or what both of the last two are above, where a script gives up."""
    return max(median(values[-BEGIN:]), min(values[-2:]))


def _positive(usual: float, end: float) -> tuple[float, float] | None:
    return (usual, end) if usual > 0 else None


def _lost(losses: Sequence[float], record: RankRecord, *, soon: bool) -> bool:
    """Whether training came to grief: the loss is not finite or ten times what it was.

    Where it ended so SOON that there is no usual loss, or by an operation that is not defined everywhere, it must have
    been finite and ten times its first value before.
    """
    if soon or not all(map(seen.overflowed, record.all(NonFinite))):
        early = [loss for loss in losses if isfinite(loss)]
        return len(early) > 1 and max(early) > WORSE * max(early[0], 1e-12)
    if record.has(NonFinite) or any(not isfinite(loss) for loss in losses):
        return True
    if len(losses) < 2 * BEGIN:
        return False
    return _end(losses) > WORSE * max(median(losses[:BEGIN]), 1e-12)


def _grown(events: Sequence[Layers]) -> tuple[str, float] | None:
    """The weight whose gradient grew most between the first and the last look, and how many times."""
    looks = [event.layers for event in events if any(isfinite(norm) for _, norm, _ in event.layers)]
    if len(looks) < 2:
        return None
    first = {name: norm for name, norm, _ in looks[0]}
    grown = [
        (norm / first[name], name)
        for name, norm, _ in looks[-1]
        if first.get(name) and isfinite(norm) and isfinite(first[name])
    ]
    return (max(grown)[1], max(grown)[0]) if grown else None


def _lines(record: RankRecord, parameter: str) -> Further:
    """What was written of the lines of a parameter."""
    known = (event.parameters[parameter] for event in record.all(Births) if parameter in event.parameters)
    return next(known, ())


def _parts(parameter: str) -> list[str]:
    """The parts of the model that a parameter belongs to: `encoder`, and of several in a row `blocks.3`."""
    first, *others = parameter.split(".")
    return [f"{first}.{others[0]}", first] if len(others) > 1 and others[0].isdecimal() else [first]


def _module(parameter: str) -> str:
    return parameter.rpartition(".")[0] or parameter

"""What a record says about the sizes of gradients: over the depth of the model, and over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite, log10
from statistics import median
from typing import Any

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord

DEEP = 6  # weights, at least: in a shallower model nothing can vanish along the way
LOOKS = 3  # at least, at the gradients of all layers
ORDERED = 0.8  # of all pairs of layers, at least, in which the earlier one has the smaller gradient
BEGIN = 5  # norms at the start of a run that tell its usual size, and at the end that tell where it went
RISE = 1000.0  # times: gradients-exploding.md defends it
WORSE = 10.0  # times the loss at the start
NEARLY = 0.9  # of them


@detector("run/gradients-vanishing")
def gradients_vanishing(record: RankRecord) -> Iterator[Sighting]:
    """The gradients of the first layers are orders of magnitude below those of the last."""
    for events in _by_optimizer(record, "layers").values():
        fallen = [orders for event in events if (orders := _fallen(event["layers"])) is not None]
        if len(fallen) < max(LOOKS, 0.8 * len(events)):
            continue
        last, times = events[-1], 10 ** median(fallen)
        first, deepest = last["layers"][0], last["layers"][-1]
        yield Sighting(
            _place(record, last, _module(first[0])),
            f"the gradient of {first[0]} is {_rms(first):.1e} per weight, that of {deepest[0]} {_rms(deepest):.1e}: "
            f"{times:.0e} times as much in the last third of {len(last['layers'])} layers as in the first",
            median(fallen),
            "orders of magnitude",
            (min(fallen), max(fallen)),
        )


@detector("run/gradients-exploding")
def gradients_exploding(record: RankRecord) -> Iterator[Sighting]:
    """The gradients' norm rose a thousand times or more, and the loss went with it."""
    if record.all("carried"):
        return  # gradients that pile up grow for a reason that has a name of its own
    losses = [row["loss"] for row in record.every_step if row.get("loss") is not None]
    for optimizer, events in _by_optimizer(record, "grad_norm").items():
        values = [(event["at"], event["value"]) for event in events]
        finite = [(at, value) for at, value in values if isfinite(value)]
        if len(finite) < 2 * BEGIN:
            continue
        usual = median(value for _, value in finite[:BEGIN])
        end = median(value for _, value in finite[-BEGIN:]) if len(finite) == len(values) else finite[-1][1]
        if usual <= 0 or end < RISE * usual or not _lost(losses, record):
            continue
        at = next(at for at, value in finite if value > 100 * usual)
        path, line = events[0].get("path") or None, events[0].get("line") or None
        layer = _grown(_by_optimizer(record, "layers").get(optimizer, []))
        yield Sighting(
            Place(path=path, line=line, rank=record.rank, step=at, module=_module(layer[0]) if layer else None),
            f"the norm of the gradients rose from {usual:.3g} to {end:.3g}, past a hundred times the usual at step {at}"
            + (f"; most in {layer[0]} ({layer[1]:.0e} times)" if layer else ""),
            end / usual,
            "times",
        )


@detector("run/dead-units")
def dead_units(record: RankRecord) -> Iterator[Sighting]:
    """Nearly all outputs of a layer got no gradient in dozens of steps: whatever comes in, they give nothing on."""
    if record.all("non-finite"):
        return
    last = {event["layer"]: event for event in record.all("units")}
    dead = [event for event in last.values() if event["dead"] >= NEARLY * event["of"]]
    for event in dead[-1:]:  # what stands before a dead layer gets no gradient either
        name, of, count = event["layer"], event["of"], event["dead"]
        yield Sighting(
            _place(record, event, name),
            f"{count} of {of} outputs of {name} were never positive and got no gradient in {event['over']} steps up to "
            f"step {event['at']}",
            count / of,
            "of the layer's outputs",
        )


def _place(record: RankRecord, event: dict[str, Any], module: str) -> Place:
    path, line = event.get("path") or None, event.get("line") or None
    return Place(path=path, line=line, rank=record.rank, step=event["at"], module=module)


def _by_optimizer(record: RankRecord, kind: str) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    for event in record.all(kind):
        found.setdefault(event["optimizer"], []).append(event)
    return found


def _rms(layer: list[Any]) -> float:
    """The root mean square of a weight's gradient."""
    return float(layer[1] / layer[2] ** 0.5)


def _fallen(layers: Sequence[list[Any]]) -> float | None:
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


def _lost(losses: Sequence[float], record: RankRecord) -> bool:
    """Whether training came to grief: the loss is not finite or ten times what it was."""
    if record.all("non-finite") or any(not isfinite(loss) for loss in losses):
        return True
    if len(losses) < 2 * BEGIN:
        return False
    return median(losses[-BEGIN:]) > WORSE * max(median(losses[:BEGIN]), 1e-12)


def _grown(events: Sequence[dict[str, Any]]) -> tuple[str, float] | None:
    """The weight whose gradient grew most between the first and the last look, and how many times."""
    if len(events) < 2:
        return None
    first = {name: norm for name, norm, _ in events[0]["layers"]}
    grown = [
        (norm / first[name], name)
        for name, norm, _ in events[-1]["layers"]
        if first.get(name) and isfinite(norm) and isfinite(first[name])
    ]
    return (max(grown)[1], max(grown)[0]) if grown else None


def _module(parameter: str) -> str:
    return parameter.rpartition(".")[0] or parameter

"""What an experiment has tried, a line for each change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from torchtriage.core.plain import number, within
from torchtriage.report.figure import figure
from torchtriage.report.text import count, line

CHANGES = {
    "learning-rate": "learning rate x {:g}",
    "weight-decay": "no weight decay",
    "clipping": "no clipping",
    "dropout": "no dropout",
    "autocast": "no autocast",
    "one-batch": "one batch only",
    "other-targets": "targets of other samples",
    "batch-from-memory": "batches from memory",
    "workers": "loader workers: {:g}",
    "threads": "threads: {:g}",
    "fused-optimizer": "fused optimizer",
    "channels-last": "channels last",
    "bfloat16": "bfloat16 autocast",
    "compilation": "torch.compile",
    "anomaly-detection": "no anomaly detection",
    "deterministic-kernels": "any kernels, not only deterministic ones",
}
"""By intervention; {} stands for its value."""


class Tried(Struct, frozen=True):
    """title: of the part. rows: what was changed, and what came of it."""

    title: str
    rows: tuple[tuple[str, str], ...]


def tried(measurements: dict[str, Any]) -> Iterator[Tried]:
    """What an experiment has tried of the course of the loss, and of the time of a step."""
    yield from _remedies(within(measurements, "remedies"))
    told = within(measurements, "experiment")
    if not isinstance(told, dict):
        return
    speed = told.get("speed")
    paces = speed if isinstance(speed, dict) else {}
    of_losses, of_times = tuple(_rows(told)), tuple(_paces(paces))
    steps, trials, legs = (
        int(number(each) or 0) for each in (told.get("steps"), told.get("branches"), paces.get("legs"))
    )
    seconds = figure(number(told.get("seconds")) or 0.0, "s")
    if of_losses:
        taken = "" if of_times else f", in {seconds}"
        yield Tried(f"Tried from the first step: {count(trials, 'trial')} of {steps} steps each{taken}", of_losses)
    if of_times:
        taken = f", {seconds} in all" if of_losses else f", in {seconds}"
        yield Tried(f"Timed: {count(legs, 'run')} of {steps} steps each{taken}", of_times)


def _remedies(told: Any) -> Iterator[Tried]:
    if not isinstance(told, dict):
        return
    rows = tuple(
        (f"{line(str(each.get('fault')))} at {line(str(each.get('path')))}:{each.get('line')}", _judgement(each))
        for each in _dicts(told.get("tried"))
    )
    if rows:
        steps, legs = (int(number(told.get(name)) or 0) for name in ("steps", "legs"))
        seconds = figure(number(told.get("seconds")) or 0.0, "s")
        yield Tried(f"Remedies tried: {count(legs, 'run')} of {steps} steps each, in {seconds}", rows)


def _judgement(each: dict[str, Any]) -> str:
    """The verdict, and what it is made of: what is worse comes first."""
    worse, facts = each.get("worse"), each.get("facts")
    said = [line(str(fact)) for found in (worse, facts) if isinstance(found, list | tuple) for fact in found]
    verdict = line(str(each.get("verdict")))
    return f"{verdict}: {'; '.join(said)}" if said else verdict


def _paces(told: dict[str, Any]) -> Iterator[tuple[str, str]]:
    step = number(told.get("step"))
    if step is not None:
        yield "unchanged", f"a step takes {figure(step, 's')}"
    for each in _dicts(told.get("arms")):
        was, now = (figure(number(each.get(name)) or 0.0, "s") for name in ("from", "to"))
        yield name(each.get("changes")), f"step {was} to {now} ({_saved(each)})"
    yield from _without_result(told)


def _saved(each: dict[str, Any]) -> str:
    """By how much a step is shorter or longer, as a difference that has a sign."""
    value, spread = number(each.get("saved")) or 0.0, each.get("spread")
    text = _signed(-value)
    if not isinstance(spread, list | tuple):
        return f"{text}, one run of each"
    low, high = sorted(-(number(end) or 0.0) for end in spread)
    return f"{text}, 95 % interval {_signed(low)} to {_signed(high)}"


def _signed(share: float) -> str:
    return f"{share:+.0%}"


def _rows(told: dict[str, Any]) -> Iterator[tuple[str, str]]:
    start = number(told.get("start"))
    for each in _dicts(told.get("arms")):
        end = number(each.get("end"))
        to = f"the loss goes from {start:.3g} to {end:.3g}" if start is not None and end is not None else "not finite"
        yield name(each.get("changes")), f"{to}{_further(each)}"
    yield from _without_result(told)


def _without_result(told: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for each in _dicts(told.get("without_result")):
        yield name(each.get("changes")), f"no result: {line(str(each.get('why')))}"


def _further(each: dict[str, Any]) -> str:
    """How it did beside the job as it is, where several pairs tell."""
    value, spread = number(each.get("further")), each.get("spread")
    if value is None or not isinstance(spread, list | tuple):
        return ""
    if each.get("at_least") is True:
        return f"; further than unchanged by {value:.0%} or more"
    low, high = (number(end) or 0.0 for end in spread)
    return f"; further than unchanged by {value:.0%} (95 % interval {low:.0%} to {high:.0%})"


def name(changes: Any) -> str:
    """What an arm changes, in words."""
    rows = changes.items() if isinstance(changes, dict) else ()
    return ", ".join(CHANGES.get(each, line(each)).format(number(value) or 0.0) for each, value in rows) or "unchanged"


def _dicts(rows: Any) -> list[dict[str, Any]]:
    return [each for each in rows if isinstance(each, dict)] if isinstance(rows, list | tuple) else []

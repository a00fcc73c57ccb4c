"""What an experiment has tried, a line for each change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from torchtriage.core.plain import number, within
from torchtriage.report.figure import figure
from torchtriage.report.text import count, line

ALIKE = 0.005  # of a peak: less is no difference in the digits that are shown


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
    memory = told.get("memory")
    if isinstance(memory, dict) and (of_memory := tuple(_peaks(memory))):
        runs, steps = (int(number(memory.get(name)) or 0) for name in ("legs", "steps"))
        yield Tried(f"Peak of the device's memory: {count(runs, 'run')} of {steps} steps each", of_memory)


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
        yield name(each), f"step {was} to {now} ({_saved(each)})"
    yield from _without_result(told)


def _peaks(told: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What each run holds at most; of one that fails, the allocator's own words."""
    own = within(told, "unchanged")
    if not isinstance(own, dict) or not (own.get("full") or own.get("peak")):
        return
    most, is_full = number(own.get("peak")) or 0.0, bool(own.get("full"))
    yield "unchanged", f"runs out of memory: {line(str(own.get('full')))}" if is_full else figure(most, "B")
    for each in _dicts(told.get("arms")):
        peak = number(each.get("peak")) or 0.0
        if each.get("full"):
            said = "runs out of memory"
        elif is_full:
            said = f"runs, with a peak of {figure(peak, 'B')}"
        else:
            said = f"{figure(most, 'B')} to {figure(peak, 'B')} ({_signed(peak / most - 1)})"
            if abs(peak / most - 1) < ALIKE:
                said = "no difference"
        yield name(each), said
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
        yield name(each), f"{to}{_further(each)}"
    yield from _without_result(told)


def _without_result(told: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for each in _dicts(told.get("without_result")):
        yield name(each), f"no result: {line(str(each.get('why')))}"


def _further(each: dict[str, Any]) -> str:
    """How it did beside the job as it is, where several pairs tell."""
    value, spread = number(each.get("further")), each.get("spread")
    if value is None or not isinstance(spread, list | tuple):
        return ""
    if each.get("at_least") is True:
        return f"; further than unchanged by {value:.0%} or more"
    low, high = (number(end) or 0.0 for end in spread)
    return f"; further than unchanged by {value:.0%} (95 % interval {low:.0%} to {high:.0%})"


def name(each: dict[str, Any]) -> str:
    """What an arm changes, in words."""
    words = each.get("name")
    return line(words) if isinstance(words, str) else "unchanged"


def _dicts(rows: Any) -> list[dict[str, Any]]:
    return [each for each in rows if isinstance(each, dict)] if isinstance(rows, list | tuple) else []

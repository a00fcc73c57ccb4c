"""A rehearsal on a simulated card, in words that say of each figure that it is simulated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from torchtriage.core.plain import number, within
from torchtriage.report.figure import figure
from torchtriage.report.text import count, line

SHOWN = 5
"""Lines of each kind; the case holds more."""
SELDOM = 0.5
"""Of the steps: what fewer do is no matter of a step."""
HELD = {
    "parameters": "parameters",
    "gradients": "gradients",
    "optimizer_states": "optimizer states",
    "buffers": "buffers",
    "other": "activations and other",
}
CALLS = {"copy_": "a blocking copy", "stream": "synchronize", "device": "synchronize", "event": "synchronize"}
KINDS = {"host-to-device": "to the device", "device-to-host": "to the host"}


class Rehearsed(Struct, frozen=True):
    """title: of the part. verdict: whether the job fits the card. rows: what each line is about, and the line."""

    title: str
    verdict: str
    rows: tuple[tuple[str, str], ...]


def rehearsed(measurements: dict[str, Any]) -> Rehearsed | None:
    """None for a job that ran on a real device, or on none."""
    told = within(measurements, "rehearsal")
    if not isinstance(told, dict) or not told:
        return None
    rows = (*_memory(told), *_kernels(told), *_waits(told), *_copies(told), *_absent(told))
    return Rehearsed(
        f"Rehearsal on a simulated device ({_card(told)})",
        _verdict(told, is_broken_off=bool(measurements.get("end")) or told.get("is_whole") is False),
        rows,
    )


def _card(told: dict[str, Any]) -> str:
    devices, memory = number(told.get("devices")) or 1, number(told.get("memory")) or 0.0
    several = f"{devices:.0f} x " if devices > 1 else ""
    card = line(str(told.get("card", "")))
    size = "" if card.endswith(" of memory") else f", {figure(memory, 'bytes')}"  # a card that is known by its size
    return f"{several}{card}{size}"


def _verdict(told: dict[str, Any], *, is_broken_off: bool) -> str:
    card, peak = _card(told), number(within(told, "peak", "bytes"))
    lacking = next((each for each in _rows(told, "absent") if each.get("ends")), None)
    if lacking is not None:
        return f"Simulated: it ends for lack of {line(str(lacking.get('name')))}, at {_place(lacking)} ({card})."
    if told.get("out_of_memory"):
        return f"Simulated: it does not fit ({card})."
    if peak is None:
        return f"Simulated: nothing was put on the device ({card})."
    if is_broken_off:
        return f"Simulated: {figure(peak, 'bytes')} at the peak until then ({card})."
    return f"Simulated: it fits, with {figure(peak, 'bytes')} at the peak ({card})."


def _memory(told: dict[str, Any]) -> Iterator[tuple[str, str]]:
    peak, memory = within(told, "peak"), number(told.get("memory"))
    size, reserved = number(within(peak, "bytes")), number(within(peak, "reserved"))
    if isinstance(out := told.get("out_of_memory"), dict):
        yield "memory", f"it runs out at {_place(out)}"
    if size is None or not memory:
        return
    where = _place(peak)
    kept = f"; the allocator holds up to {figure(reserved, 'bytes')}" if reserved else ""
    step = number(within(peak, "step"))
    at = f" in step {step:.0f}" if step is not None else ""
    yield (
        "" if out else "memory",
        f"{figure(size, 'bytes')} at the peak{at}, {where}: {figure(size / memory, 'share')} of the card{kept}",
    )
    holders = {said: number(within(peak, "holders", name)) or 0.0 for name, said in HELD.items()}
    parts = (f"{said} {figure(held, 'bytes')}" for said, held in holders.items() if held)
    yield "", f"at the peak: {', '.join(parts)}"


def _kernels(told: dict[str, Any]) -> Iterator[tuple[str, str]]:
    kernels, steps, seconds = (number(told.get(name)) for name in ("kernels", "steps", "device_seconds"))
    if kernels is None or not steps:
        return
    least = f"; simulated, they take {figure(seconds, 's')} at least, by the card's data sheet" if seconds else ""
    yield "kernels", f"{figure(round(kernels, 1))} in a step (mean of {count(int(steps), 'step')}){least}"


def _waits(told: dict[str, Any]) -> Iterator[tuple[str, str]]:
    rows = _rows(told, "waits")
    if number(told.get("steps")) and not rows:
        yield "waits", "the host waits for the device at no line"
    calls = (line(str(each.get("call", ""))) for each in rows)
    said = (
        f"{_times(each, told)} at {_place(each)}: {CALLS.get(call, call)}"
        for each, call in zip(rows, calls, strict=True)
    )
    yield from _listed("waits", said, len(rows))


def _copies(told: dict[str, Any]) -> Iterator[tuple[str, str]]:
    rows = _rows(told, "copies")
    yield from _listed("copies", (_copy(each, told) for each in rows), len(rows))


def _copy(each: dict[str, Any], told: dict[str, Any]) -> str:
    memory = "pinned" if each.get("pinned") else "pageable"
    blocking = ", non-blocking" if each.get("non_blocking") else ""
    kind = KINDS.get(str(each.get("kind")), "")
    times, size = number(each.get("times")) or 0.0, number(each.get("bytes")) or 0.0
    each_of = f"{figure(size / times, 'bytes')}{' each' if times > 1 else ''}" if times else figure(size, "bytes")
    return f"{_times(each, told)} at {_place(each)}: {each_of} {kind} ({memory} memory{blocking})"


def _absent(told: dict[str, Any]) -> Iterator[tuple[str, str]]:
    rows = _rows(told, "absent")
    said = (f"{line(str(each.get('name')))} at {_place(each)}: {line(str(each.get('why')))}" for each in rows)
    yield from _listed("missing", said, len(rows))


def _listed(name: str, said: Iterator[str], of: int) -> Iterator[tuple[str, str]]:
    for at, (each, _) in enumerate(zip(said, range(SHOWN), strict=False)):
        yield "" if at else name, each
    if of > SHOWN:
        yield "", f"and {count(of - SHOWN, 'more line')}, in the case"


def _times(each: dict[str, Any], told: dict[str, Any]) -> str:
    """How often in a step; of what few steps do, as a checkpoint, how often in those."""
    steps, having = number(told.get("steps")) or 0.0, number(each.get("in_steps"))
    if having is not None and having < SELDOM * steps:
        times = round((number(each.get("times")) or 0.0) * steps)
        return f"{count(times, 'time')} in {having:.0f} of {steps:.0f} steps"
    return f"{figure(round(number(each.get('times')) or 0.0, 2))} a step"


def _rows(told: dict[str, Any], name: str) -> list[dict[str, Any]]:
    rows = told.get(name)
    return [each for each in rows if isinstance(each, dict)] if isinstance(rows, list | tuple) else []


def _place(each: Any) -> str:
    path, at = line(str(within(each, "path") or "")), number(within(each, "line"))
    return f"{path}:{at:.0f}" if path and at else "a line of torch's own (backward)"

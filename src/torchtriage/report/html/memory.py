"""What a memory snapshot tells of a device: its history as a plot, and what was alive where it matters as a table."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath
from typing import Any

from msgspec import Struct

from torchtriage.core.plain import within
from torchtriage.report.figure import figure
from torchtriage.report.html.plots import Figures, Mark, Plot
from torchtriage.report.ranks import finite, whole
from torchtriage.report.text import line

SHOWN = 8
"""Devices that are drawn; the case holds them all."""
_ROWS = 10
_REST = "everything else"
_LONGEST = 44


class Alive(Struct, frozen=True):
    """What one line of the job holds. share: of all that is in use."""

    bytes: str
    share: str
    blocks: str
    at: str


class Held(Struct, frozen=True):
    """One device. plot: None where no history was recorded. alive: at the failed allocation, else at the peak."""

    title: str
    words: str
    plot: Plot | None
    when: str
    alive: tuple[Alive, ...]


def memories(measurements: dict[str, Any]) -> tuple[Held, ...]:
    """The devices that held most, in the order of the case."""
    devices = within(measurements, "snapshot", "devices")
    known = [each for each in devices if isinstance(each, dict)] if isinstance(devices, list | tuple) else []
    told = [each for each in known if (finite(each.get("peak")) or 0) > 0]
    most = sorted(told, key=lambda each: -float(each["peak"]))[:SHOWN]
    shown = [each for each in told if any(each is one for one in most)]
    return tuple(_held(each, at, len(told)) for at, each in enumerate(shown))


def _held(device: dict[str, Any], at: int, of: int) -> Held:
    failed = _failed(device)
    file = PurePath(str(device.get("file") or "")).name
    title = f"Device {whole(device.get('device')) or 0}" + (f", {line(file)}" if file and of > 1 else "")
    when = "when the allocation failed" if failed else "at the peak"
    return Held(title, _words(device, failed), _plot(device, at, failed), when, _alive(device))


def _failed(device: dict[str, Any]) -> dict[str, Any] | None:
    told = device.get("failed")
    rows = [each for each in told if isinstance(each, dict)] if isinstance(told, list | tuple) else []
    return rows[-1] if rows else None


def _words(device: dict[str, Any], failed: dict[str, Any] | None) -> str:
    sizes = {name: finite(device.get(name)) for name in ("peak", "most_reserved")}
    said = f"At most {figure(sizes['peak'] or 0.0, 'bytes')} were in use"
    said += f", {figure(sizes['most_reserved'], 'bytes')} reserved." if sizes["most_reserved"] else "."
    asked = finite(failed.get("size")) if failed else None
    if failed and asked:
        free, stack = finite(failed.get("device_free")), line(str(failed.get("stack") or ""))
        rest = f", with {figure(free, 'bytes')} free on the device" if free is not None and free >= 0 else ""
        said += f" {figure(asked, 'bytes')} could not be allocated{f' at {stack}' if stack else ''}{rest}."
    return said


def _plot(device: dict[str, Any], at: int, failed: dict[str, Any] | None) -> Plot | None:
    """In use by the lines that hold most, as layers, and reserved as a line."""
    table = device.get("timeline")
    entries = _entries(within(table, "entry"))
    used, reserved = (_column(within(table, name), len(entries)) for name in ("used", "reserved"))
    if len(entries) < 2 or not used:
        return None
    highest = max((value for value in (*used, *reserved) if value is not None), default=0.0)
    power, unit = (30, "GiB") if highest >= 2.0**30 else (20, "MiB")
    layers = _layers(device, used)
    columns = {**layers, **({"reserved": reserved} if reserved else {})}
    return Plot(
        "snapshot" if at == 0 else f"snapshot-{at}",
        "Memory in use, by the line that asked for it",
        entries,
        {name: tuple(_scaled(value, power) for value in column) for name, column in columns.items()},
        _marks(device, failed),
        unit,
        _note(device, len(entries)),
        stacked=True,
        zero=True,
        axis="entry",
        lines=("reserved",) if reserved else (),
    )


def _entries(value: Any) -> tuple[int, ...]:
    told = [finite(each) for each in _listed(value)]
    return tuple(int(each) for each in told if each is not None) if None not in told else ()


def _layers(device: dict[str, Any], used: Figures) -> dict[str, Figures]:
    """The largest at the bottom, what the others leave on top. Files are called by their names where those tell."""
    told = device.get("layers")
    known = {str(name): _column(each, len(used)) for name, each in told.items()} if isinstance(told, dict) else {}
    known = {name: column for name, column in known.items() if column}
    if not known:
        return {"in use": used}
    rows = zip(used, *known.values(), strict=True)
    rest = tuple(max((whole or 0.0) - sum(value or 0.0 for value in parts), 0.0) for whole, *parts in rows)
    short = Counter(_short(name) for name in known)
    named = {_short(name) if short[_short(name)] == 1 else _cut(line(name)): column for name, column in known.items()}
    return {**named, _REST: rest}


def _short(name: str) -> str:
    """The name of the file, not its folders: model.py:31 (forward)."""
    place, space, function = line(name).partition(" (")
    return _cut(f"{place.replace(chr(92), '/').rsplit('/', 1)[-1]}{space}{function}")


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else f"…{name[1 - _LONGEST :]}"


def _marks(device: dict[str, Any], failed: dict[str, Any] | None) -> tuple[Mark, ...]:
    row = whole(device.get("row"))
    if row is None or row < 0:
        return ()
    size = finite(failed.get("size")) if failed else None
    return (
        Mark(
            row,
            f"{figure(size, 'bytes')} could not be allocated" if size else "peak",
            tone="error" if failed else "info",
        ),
    )


def _note(device: dict[str, Any], drawn: int) -> str:
    entries, seconds = whole(device.get("entries")) or 0, finite(device.get("seconds"))
    lasted = f" of {figure(seconds, 's')}" if seconds else ""
    most = f", the most in each of {drawn} parts" if entries > drawn else ""
    return f"{entries:,} entries of the recorded history{lasted}{most}."


def _alive(device: dict[str, Any]) -> tuple[Alive, ...]:
    told = [each for each in _listed(device.get("alive")) if isinstance(each, dict)]
    used = _at(device)
    lines: dict[str, list[float]] = {}
    for each in told:
        size, blocks = finite(each.get("bytes")), whole(each.get("blocks"))
        if size and size > 0 and blocks:
            row = lines.setdefault(line(str(each.get("at") or "")), [0.0, 0.0])
            row[0], row[1] = row[0] + size, row[1] + blocks
    most = sorted(lines.items(), key=lambda item: (-item[1][0], item[0]))[:_ROWS]
    return tuple(
        Alive(figure(size, "bytes"), figure(size / used, "share") if used >= size else "", f"{blocks:,.0f}", at)
        for at, (size, blocks) in most
    )


def _at(device: dict[str, Any]) -> float:
    """What is in use at the row that is looked at."""
    failed = _failed(device)
    return (finite(failed.get("used")) if failed else finite(device.get("peak"))) or 0.0


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _column(value: Any, length: int) -> Figures:
    """VALUE as so many figures; empty where it has another length."""
    column = tuple(map(finite, _listed(value)))
    return column if len(column) == length else ()


def _scaled(value: float | None, power: int) -> float | None:
    return None if value is None else float(f"{value * 2.0**-power:.4g}")

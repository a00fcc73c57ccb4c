"""From the text of a trace to columns: a typed decoder for what is as it should be, an exact one for what is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from msgspec import Raw, Struct

from torchtriage.examine.artefact.trace import words
from torchtriage.examine.artefact.trace.events import NONE, Collective, Events, Gathering, Numbers, Odd
from torchtriage.examine.artefact.trace.exact import LARGEST, exact, identity, nanoseconds, whole
from torchtriage.examine.artefact.trace.pieces import Pieces

TIGHT = 2.0**43
"""Microseconds below which a double tells every nanosecond from the next: 101 days."""
JOINED = 4
"""Pieces that are taken together before what does not read counts as a break."""
NO_TIME = "events without a time or a duration that is a number"
NEGATIVE = "events with a negative duration"


class Args(
    Struct,
    gc=False,
    frozen=True,
    rename={
        "inside": "External id",
        "call": "correlation",
        "collective": "Collective name",
        "received": "In msg nelems",
        "sent": "Out msg nelems",
        "group": "Process Group Name",
        "ranks": "Process Group Ranks",
        "sequence": "Seq",
        "dims": "Input Dims",
        "types": "Input type",
    },
):
    """What is read of an event's arguments."""

    inside: int = NONE
    call: int = NONE
    bytes: int = 0
    collective: str = ""
    received: int = 0
    sent: int = 0
    group: str = ""
    ranks: Raw = Raw(b"")
    sequence: int = NONE
    dtype: str = ""
    dims: Raw = Raw(b"")
    types: Raw = Raw(b"")


class Event(Struct, gc=False):
    """What is read of an event. ts, dur: microseconds."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    tid: int | str = 0
    ts: float | None = None
    dur: float | None = None
    args: Args = Args()


_typed = msgspec.json.Decoder(list[Event])
_NOTHING = Args()


class Read(Struct):
    """A trace as read: its columns, what it says beside them, and what was wrong with it.

    seen: all events of the file. broken: the offset at which reading ended before the list of events did; None
    where it was read to its end. found: whether there is a list of events at all.
    """

    events: Events
    fields: dict[str, Any]
    odd: Odd
    seen: int = 0
    broken: int | None = None
    found: bool = True


class Decoding:
    """One trace on its way from text to columns."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self.pieces, self.columns, self.odd = Pieces(read), Gathering(), Odd()
        self.seen, self.broken = 0, None

    def done(self) -> Read:
        """Reads to the end, or to the break."""
        if self.pieces.found:
            self._all()
        return Read(self.columns.done(), self.pieces.fields(), self.odd, self.seen, self.broken, self.pieces.found)

    def _all(self) -> None:
        waiting, began, joined = b"", 0, 0
        for offset, text, last in self.pieces:
            began, waiting = (began, waiting + text) if joined else (offset, text)
            joined += 1
            if self._typed(waiting, last):
                joined = 0
            elif joined >= JOINED or last:
                joined = 0
                if not self._exactly(waiting, began, last):
                    return

    def _typed(self, text: bytes, last: bool) -> bool:
        """Takes TEXT over if it is what Kineto writes; False, with nothing taken, if it is not."""
        try:
            events, rest = _listed(text, last)
            groups, lasting = _by_category(events)
            # a key that stands twice, perhaps: the typed decoder would not tell
            if text.count(b'"dur"') > lasting or text.count(b'"ts"') > len(events):
                return False
            timed = [(group, _times([each.ts for each in group]), _times([each.dur for each in group])) for group in groups]
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, _NotPlain):
            return False
        if rest is not None:
            self.pieces.tail = rest
        self.seen += len(events)
        for group, start, length in timed:
            self._add(group, start, length)
        return True

    def _exactly(self, text: bytes, began: int, last: bool) -> bool:
        """Takes over what reads of TEXT, event by event; False where reading cannot go on."""
        found = exact(text, self.odd)
        self.seen += len(found.events)
        self.pieces.tail = found.rest
        groups: dict[str, list[tuple[Event, int, int]]] = {}
        for told in found.events:
            category = told.get("cat")
            if told.get("ph") != "X" or not isinstance(category, str) or category not in words.CATEGORIES:
                continue
            start, length = nanoseconds(told.get("ts")), nanoseconds(told.get("dur"))
            if start is None or length is None:
                self.odd.add(NO_TIME)
            else:
                groups.setdefault(category, []).append((_event(told, category), start, length))
        for rows in groups.values():
            events, starts, lengths = zip(*rows, strict=True)
            self._add(list(events), np.array(starts, np.int64), np.array(lengths, np.int64))
        if found.ended is not None or (last and not found.closed):
            self.broken = began + (len(text) if found.ended is None else found.ended)
        return self.broken is None and not found.closed

    def _add(self, events: list[Event], start: Numbers, length: Numbers) -> None:
        """EVENTS of one category."""
        if not events:
            return
        if (length < 0).any():
            keep = length >= 0
            self.odd.add(NEGATIVE, int((~keep).sum()))
            events = [event for event, kept in zip(events, keep.tolist(), strict=True) if kept]
            start, length = start[keep], length[keep]
        category, number = words.CATEGORIES[events[0].cat] if events else 0, len(events)
        none = np.full(number, NONE, np.int64)
        columns = self.columns
        first = columns.count
        on_host = category not in words.ON_DEVICE
        is_called, is_inside = category not in words.NAMED, category in words.INSIDE
        columns.add(
            category=np.full(number, category, np.int8),
            name=columns.names.numbers([event.name for event in events]),
            thread=columns.threads.numbers([event.tid for event in events]) if on_host else none,
            start=start,
            length=length,
            call=_integers([event.args.call for event in events]) if is_called else none,
            inside=_integers([event.args.inside for event in events]) if is_inside else none,
            shape=self._shapes(events) if category in words.SHAPED else none,
        )
        if not on_host:
            self._moved(events, first)

    def _moved(self, events: list[Event], first: int) -> None:
        """What collectives and copies carry."""
        for row, event in enumerate(events, first):
            if event.args.collective:
                self.columns.collectives[row] = _collective(event.args)
            if event.args.bytes > 0:
                self.columns.copied[row] = event.args.bytes

    def _shapes(self, events: list[Event]) -> Numbers:
        """For each event the number of its name with the shapes of its inputs; NONE where they are not told."""
        table, none = self.columns.shapes, _NOTHING.dims
        numbers = [
            NONE if event.args.dims is none else table[event.name, bytes(event.args.dims), bytes(event.args.types)]
            for event in events
        ]
        return np.array(numbers, np.int64)


def decode(read: Callable[[int], bytes]) -> Read:
    """The trace that READ gives, so many of its next bytes at a time; never raises for what they are."""
    return Decoding(read).done()


def _listed(text: bytes, last: bool) -> tuple[list[Event], bytes | None]:
    """The events of TEXT, and of the last piece what follows them."""
    if not last:
        return _typed.decode(b"[" + text + b"]"), None
    end, error = len(text), msgspec.DecodeError("no end of the list")
    for _ in range(16):
        end = text.rfind(b"]", 0, end)
        if end < 0:
            break
        try:
            return _typed.decode(b"[" + text[:end] + b"]"), text[end:]
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError as told:
            error = told
    raise error


class _NotPlain(Exception):
    """Times from which whole nanoseconds cannot be told."""


def _by_category(events: list[Event]) -> tuple[list[list[Event]], int]:
    """Those of EVENTS that are read further, by category, and how many of all have a duration by their phase."""
    groups: dict[str, list[Event]] = {}
    lasting = 0
    for event in events:
        if event.ph == "X":
            lasting += 1
            if event.cat in groups:
                groups[event.cat].append(event)
            else:
                groups[event.cat] = [event]
    return [group for category, group in groups.items() if category in words.CATEGORIES], lasting


def _times(values: list[float | None]) -> Numbers:
    """Microseconds in whole nanoseconds; raises _NotPlain where they do not tell."""
    try:
        times = np.fromiter(values, float, len(values))  # type: ignore[arg-type]
    except TypeError as error:
        raise _NotPlain from error
    largest = np.abs(times).max(initial=0.0)
    if not largest < TIGHT and (not largest < LARGEST / 1000 or np.modf(times)[0].any()):
        raise _NotPlain
    micro = np.floor(times)  # taken apart first: a product of both parts would be rounded twice
    return micro.astype(np.int64) * 1000 + np.rint((times - micro) * 1000).astype(np.int64)


def _integers(values: list[int]) -> Numbers:
    try:
        return np.fromiter(values, np.int64, len(values))
    except OverflowError:
        return np.array([value if abs(value) < 2**62 else NONE for value in values], np.int64)


def _collective(args: Args) -> Collective:
    return Collective(
        words.operation(args.collective),
        args.group,
        bytes(args.ranks).decode("utf-8", "replace"),
        args.sequence,
        max(args.received, args.sent),
        args.dtype,
    )


def _event(told: dict[str, Any], category: str) -> Event:
    """An event whose values may be anything."""
    args = told.get("args")
    args = args if isinstance(args, dict) else {}
    text = {key: str(value) for key, value in args.items() if isinstance(value, str)}
    made = Args(
        inside=whole(args.get("External id")),
        call=whole(args.get("correlation")),
        bytes=whole(args.get("bytes"), 0),
        collective=text.get("Collective name", ""),
        received=whole(args.get("In msg nelems"), 0),
        sent=whole(args.get("Out msg nelems"), 0),
        group=text.get("Process Group Name", ""),
        ranks=_raw(args, "Process Group Ranks"),
        sequence=whole(args.get("Seq")),
        dtype=text.get("dtype", ""),
        dims=_raw(args, "Input Dims"),
        types=_raw(args, "Input type"),
    )
    name = told.get("name")
    return Event("X", category, name if isinstance(name, str) else "", identity(told.get("tid")), args=made)


def _raw(args: dict[str, Any], key: str) -> Raw:
    return Raw(msgspec.json.encode(_plain(args[key]))) if key in args else _NOTHING.dims


def _plain(value: Any) -> Any:
    """Numbers as numbers again, that the same shapes have the same text on both ways."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return whole(value) if type(value) is not str and isinstance(value, str) else value

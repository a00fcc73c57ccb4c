"""From the text of a trace to columns: a typed decoder for what is as it should be, an exact one for what is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from msgspec import Raw, Struct

from torchtriage.examine.artefact.trace import words
from torchtriage.examine.artefact.trace.dialect import LASTING, Args, Dialect, Event
from torchtriage.examine.artefact.trace.events import NONE, Collective, Events, Gathering, Numbers, Odd
from torchtriage.examine.artefact.trace.exact import LARGEST, exact, identity, nanoseconds, whole
from torchtriage.examine.artefact.trace.pieces import Pieces
from torchtriage.examine.artefact.trace.rank import LETTERS

TIGHT = 2.0**43
"""Microseconds below which a double tells every nanosecond from the next: 101 days."""
JOINED = 2**22
"""Bytes that are taken together before what does not read counts as a break."""
NO_TIME = "events without a time or a duration that is a number"
NEGATIVE = "events with a negative duration"
_NOTHING = Args()


class Read(Struct):
    """A trace as read: its columns, what it says beside them, and what was wrong with it.

    seen: all events of the file. broken: the offset at which reading ended before the list of events did; None
    where it was read to its end. found: whether there is a list of events at all. further: the categories that it
    has and that are not known.
    """

    events: Events
    fields: dict[str, Any]
    odd: Odd
    seen: int = 0
    broken: int | None = None
    found: bool = True
    further: tuple[str, ...] = ()


class Decoding:
    """One trace on its way from text to columns."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self.pieces, self.columns, self.odd = Pieces(read), Gathering(), Odd()
        self.seen, self.dialect = 0, Dialect()
        self.broken: int | None = None

    def done(self) -> Read:
        """Reads to the end, or to the break."""
        if self.pieces.found:
            self._all()
        further = tuple(sorted(self.dialect.categories - Dialect().categories))
        columns, fields = self.columns.done(), self.pieces.fields()
        return Read(columns, fields, self.odd, self.seen, self.broken, self.pieces.found, further)

    def _all(self) -> None:
        waiting, began = b"", 0
        for offset, text, last in self.pieces:
            began, waiting = (began, waiting + text) if waiting else (offset, text)
            try:
                self._typed(waiting, last)
            except _Malformed:
                if len(waiting) < JOINED and not last:
                    continue  # it may have been cut within an event
                if not self._exactly(waiting, began, last):
                    return
            except NotPlain:
                if not self._exactly(waiting, began, last):
                    return
            waiting = b""

    def _typed(self, text: bytes, last: bool) -> None:
        """Takes TEXT over if it is what Kineto writes; raises, with nothing taken, if it is not."""
        try:
            events, rest = self._listed(text, last)
        except msgspec.ValidationError as error:
            raise NotPlain from error
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise _Malformed from error
        lasting = [event for event in events if isinstance(event, Event)]
        if text.count(b'"dur"') > len(lasting) or text.count(b'"ts"') > len(events):
            raise NotPlain  # a key that stands twice, perhaps: the typed decoder would not tell
        wanted = [event for event in lasting if event.cat in words.CATEGORIES]
        start, length = times([event.ts for event in wanted]), times([event.dur for event in wanted])
        if rest is not None:
            self.pieces.tail = rest
        self.seen += len(events)
        self._add(wanted, start, length)

    def _listed(self, text: bytes, last: bool) -> tuple[list[Any], bytes | None]:
        """The events of TEXT, and of the last piece what follows them."""
        try:
            return _ended(self.dialect, text) if last else (self.dialect.decoder().decode(b"[" + text + b"]"), None)
        except msgspec.ValidationError:
            learned = self.dialect.learned(text)
            if learned is None:
                raise
            self.dialect = learned
            return self._listed(text, last)

    def _exactly(self, text: bytes, began: int, last: bool) -> bool:
        """Takes over what reads of TEXT, event by event; False where reading cannot go on."""
        found = exact(text, self.odd)
        self.seen += len(found.events)
        self.pieces.tail = found.rest
        events, starts, lengths = [], [], []
        for told in found.events:
            category = told.get("cat")
            if told.get("ph") != LASTING or not isinstance(category, str) or category not in words.CATEGORIES:
                continue
            start, length = nanoseconds(told.get("ts")), nanoseconds(told.get("dur"))
            if start is None or length is None:
                self.odd.add(NO_TIME)
                continue
            events.append(_event(told, category))
            starts.append(start)
            lengths.append(length)
        self._add(events, np.array(starts, np.int64), np.array(lengths, np.int64))
        if found.ended is not None or (last and not found.closed):
            self.broken = began + (len(text) if found.ended is None else found.ended)
        return self.broken is None and not found.closed

    def _add(self, events: list[Event], start: Numbers, length: Numbers) -> None:
        if (length < 0).any():
            keep = length >= 0
            self.odd.add(NEGATIVE, int((~keep).sum()))
            events = [event for event, kept in zip(events, keep.tolist(), strict=True) if kept]
            start, length = start[keep], length[keep]
        columns, number, args = self.columns, len(events), [event.args for event in events]
        category = np.fromiter([words.CATEGORIES[event.cat] for event in events], np.int8, number)
        self._moved(args, np.flatnonzero(category <= words.COPY).tolist())
        columns.add(
            category=category,
            name=columns.names.numbers([event.name for event in events]),
            thread=columns.threads.numbers([event.tid for event in events]),
            start=start,
            length=length,
            call=_integers([each.call for each in args]),
            inside=_integers([each.inside for each in args]),
            shape=self._shapes(events),
        )

    def _moved(self, args: list[Args], rows: list[int]) -> None:
        """What the collectives and copies in ROWS carry."""
        first = self.columns.count
        for row in rows:
            told = args[row]
            if told.collective:
                self.columns.collectives[first + row] = _collective(told)
            if told.bytes > 0:
                self.columns.copied[first + row] = told.bytes

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


def _ended(dialect: Dialect, text: bytes) -> tuple[list[Any], bytes]:
    """The events of the last piece, and what follows the list of them."""
    end, error = len(text), msgspec.DecodeError("no end of the list")
    for _ in range(16):
        end = text.rfind(b"]", 0, end)
        if end < 0:
            break
        try:
            return dialect.decoder().decode(b"[" + text[:end] + b"]"), text[end:]
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError as told:
            error = told
    raise error


class _Malformed(Exception):
    """Text that is no JSON, or none yet."""


class NotPlain(Exception):
    """Events whose values are not of the kind that Kineto writes, or do not tell whole nanoseconds."""


def times(values: list[float | None]) -> Numbers:
    """Microseconds in whole nanoseconds; raises NotPlain where they do not tell."""
    try:
        times = np.fromiter(values, float, len(values))
    except TypeError as error:
        raise NotPlain from error
    largest = np.abs(times).max(initial=0.0)
    if not largest < TIGHT and (not largest < LARGEST / 1000 or np.modf(times)[0].any()):
        raise NotPlain
    micro = np.floor(times)  # taken apart first: a product of both parts would be rounded twice
    whole_ones: Numbers = micro.astype(np.int64) * 1000 + np.rint((times - micro) * 1000).astype(np.int64)
    return whole_ones


def _integers(values: list[int]) -> Numbers:
    try:
        return np.fromiter(values, np.int64, len(values))
    except OverflowError:
        return np.array([value if abs(value) < 2**62 else NONE for value in values], np.int64)


def _collective(args: Args) -> Collective:
    return Collective(
        words.operation(args.collective),
        args.group[:LETTERS],
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
    return Event(category, name if isinstance(name, str) else "", identity(told.get("tid")), args=made)


def _raw(args: dict[str, Any], key: str) -> Raw:
    return Raw(msgspec.json.encode(_plain(args[key]))) if key in args else _NOTHING.dims


def _plain(value: Any) -> Any:
    """Numbers as numbers again, that the same shapes have the same text on both ways."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return whole(value) if type(value) is not str and isinstance(value, str) else value

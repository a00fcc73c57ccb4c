"""The same answers every time, for legs that try whether that makes the runs equal."""

from __future__ import annotations

import copyreg
import hashlib
import random
import sys
from typing import Any

_BEGINNING = 1_700_000_000_000_000_000  # nanoseconds: any time does
_TICK = 1_000_000  # that a clock goes on each time that it is asked


def clock(name: str, wants: frozenset[str]) -> Any:
    """A clock that goes on by a millisecond each time that it is asked; None where it is left alone."""
    if "entropy" not in wants:
        return None
    at = _BEGINNING

    def tell() -> float:
        nonlocal at
        at += _TICK
        return at if name.endswith("_ns") else at / 1e9

    return tell


def entropy(wants: frozenset[str]) -> Any:
    """Bytes that look drawn, and are the same in each run: those that libraries ask for have a series of their own."""
    if "entropy" not in wants:
        return None
    calls = {True: 0, False: 0}

    def give(size: int, *, users: bool) -> bytes:
        found = b""
        while len(found) < size:
            calls[users] += 1
            found += hashlib.sha256(b"%d %d" % (users, calls[users])).digest()
        return found[:size]

    return give


def process(wants: frozenset[str]) -> Any:
    return (lambda: 4242) if "entropy" in wants else None


def ordered(name: str, found: Any) -> Any:
    """The names of a folder in the order of the alphabet."""
    if name == "listdir":
        return sorted(found)
    return _Entries(found)


class _Entries:
    """What os.scandir gives: it can be walked through, entered and closed."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self._all = iter(sorted(inner, key=lambda entry: entry.name))

    def __iter__(self) -> Any:
        return self._all

    def __next__(self) -> Any:
        return next(self._all)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.inner.close()

    def close(self) -> None:
        self.inner.close()


def begin(wants: frozenset[str], of_the_user: Any) -> None:
    """What has to be there before the first line of the user's."""
    if "seeds" in wants:
        random.seed(0)
    if "entropy" in wants:
        _dates(of_the_user)


def _dated(*state: Any) -> Any:
    """A datetime out of a pickle, which would look for its class where another stands now."""
    import datetime as dt

    return dt.datetime(*state)


def _dates(of_the_user: Any) -> None:
    """datetime.now and its like, where the user asks."""
    import datetime as dt

    inner = dt.datetime
    told = clock("time", frozenset({"entropy"}))

    class Fixed(inner):  # type: ignore[valid-type,misc]
        """Its instances are plain datetimes."""

        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            return inner(*args, **kwargs)

        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return inner.fromtimestamp(told(), tz) if of_the_user(sys._getframe(1)) is not None else inner.now(tz)

        @classmethod
        def today(cls) -> Any:
            return cls.now()

        @classmethod
        def utcnow(cls) -> Any:
            return cls.now()

    def reduced(date: Any) -> Any:
        return _dated, inner.__reduce_ex__(date, 2)[1]

    copyreg.pickle(inner, reduced)
    Fixed.__name__ = "datetime"
    dt.datetime = Fixed  # type: ignore[misc]

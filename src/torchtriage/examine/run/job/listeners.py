"""Who listens to which event, and who of them does now: sampled probes only while they watch."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .governor import Governor

    Listening: TypeAlias = tuple[tuple[str, Callable[..., None]], ...]


class Listeners:
    """Of every event: the probes that listen, in the order in which they were placed.

    all: whoever listens. now: those who are to be told in the current step; `choose` brings it up to date.
    """

    def __init__(self, events: Iterable[str], governor: Governor) -> None:
        self.all: dict[str, Listening] = dict.fromkeys(events, ())
        self.now = dict(self.all)
        self._governor = governor

    def add(self, event: str, probe: str, listener: Callable[..., None]) -> None:
        """Raises KeyError for an event that there is not."""
        self.all[event] = (*self.all[event], (probe, listener))
        self.choose()

    def drop(self, probe: str) -> None:
        self.all = {event: tuple(each for each in told if each[0] != probe) for event, told in self.all.items()}
        self.choose()

    def choose(self) -> None:
        """The window of sampled probes has opened or closed, or somebody has come or gone."""
        governor = self._governor
        self.now = {
            event: tuple(each for each in told if each[0] not in governor.sampled or governor.sees(each[0]))
            for event, told in self.all.items()
        }
        self.now["ending"] = self.all.get("ending", ())

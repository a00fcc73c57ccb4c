"""Who listens to which event, and who of them does now: sampled and spaced probes only in the steps that they see."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .governor import Governor

    Listening: TypeAlias = tuple[tuple[str, Callable[..., None]], ...]

SELDOM = ("built", "ending")  # told to everyone, whoever sees the step


class Listeners:
    """Of every event: the probes that listen, in the order in which they were placed.

    all: whoever listens. now: those who are to be told in the current step; `choose` brings it up to date.
    closely: whether some of them are there for this step only.
    """

    def __init__(self, events: Iterable[str], governor: Governor) -> None:
        self.all: dict[str, Listening] = dict.fromkeys(events, ())
        self.now = dict(self.all)
        self.closely = True
        self._governor = governor
        self._views: dict[tuple[bool, bool, bool], dict[str, Listening]] = {}

    def add(self, event: str, probe: str, listener: Callable[..., None]) -> None:
        """Raises KeyError for an event that there is not."""
        self.all[event] = (*self.all[event], (probe, listener))
        self._views.clear()
        self.choose()

    def drop(self, probe: str) -> None:
        self.all = {event: tuple(each for each in told if each[0] != probe) for event, told in self.all.items()}
        self._views.clear()
        self.choose()

    def choose(self) -> None:
        """Another kind of step begins, or somebody has come or gone."""
        governor = self._governor
        view = governor.view
        self.closely = governor.watching or governor.struck
        now = self._views.get(view)
        if now is None:
            now = {event: tuple(each for each in told if governor.sees(each[0])) for event, told in self.all.items()}
            now |= {event: self.all[event] for event in SELDOM if event in self.all}
            self._views[view] = now
        self.now = now

"""Who listens to which event, and who of them does now: sampled and spaced probes only in the steps that they see."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .governor import Account, Governor

    Listening: TypeAlias = tuple[tuple[Account, Callable[..., None]], ...]

SELDOM = ("built", "ending")  # told to everyone, whoever sees the step
AT_REST = frozenset({"begun", "skipped"})  # told to everyone in steps that rest, too
MACHINERY = "machinery"


class Listeners:
    """Of every event: the probes that listen, in the order in which they were placed.

    all: whoever listens. now: those who are to be told in the current step; `choose` brings it up to date.
    closely: whether some of them are there for this step only. resting: whether only continuous probes are told, and
    what happens seldom.
    only: the one probe, but for continuous ones, that is told of a step of which it alone knows the beginning.
    """

    def __init__(self, events: Iterable[str], governor: Governor) -> None:
        self.all: dict[str, Listening] = dict.fromkeys(events, ())
        self.now = dict(self.all)
        self.closely, self.resting = True, False
        self.only = ""
        self._governor = governor
        self._views: dict[tuple[bool | str, ...], dict[str, Listening]] = {}

    def add(self, event: str, probe: str, listener: Callable[..., None]) -> None:
        """Raises KeyError for an event that there is not."""
        self.all[event] = (*self.all[event], (self._governor.account(probe), listener))
        self._views.clear()
        self.choose()

    def probes(self) -> set[str]:
        """Whoever listens to anything."""
        return {account.probe for listening in self.all.values() for account, _ in listening}

    def drop(self, probe: str) -> None:
        if probe not in self.probes():
            return  # as at each pass over a loader that nobody looks into any more
        self.all = {event: tuple(each for each in told if each[0].probe != probe) for event, told in self.all.items()}
        self._views.clear()
        self.choose()

    def choose(self) -> None:
        """Another kind of step begins, or somebody has come or gone."""
        governor = self._governor
        view: tuple[bool | str, ...] = (self.resting, self.only, *governor.view)
        self.closely = governor.watching or governor.struck
        now = self._views.get(view)
        if now is None:
            seen = {
                event: tuple(each for each in told if governor.sees(each[0].probe)) for event, told in self.all.items()
            }
            now = {event: self._awake(event, told) if self.resting else told for event, told in seen.items()}
            if self.only:
                now = {event: tuple(each for each in told if self._knows(each[0].probe)) for event, told in now.items()}
            now |= {event: self.all[event] for event in SELDOM if event in self.all}
            self._views[view] = now
        self.now = now

    def _awake(self, event: str, told: Listening) -> Listening:
        """Those of TOLD who listen in a step that rests: else it is seen whole, or not at all."""
        if event in AT_REST:
            return told
        return tuple(each for each in told if each[0].probe in self._governor.continuous)

    def _knows(self, probe: str) -> bool:
        is_machinery = probe.partition("/")[0] == MACHINERY
        return is_machinery or probe.partition(" ")[0] == self.only or probe in self._governor.continuous

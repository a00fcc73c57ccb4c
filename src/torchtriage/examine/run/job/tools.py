"""What a probe may ask: where the user's code stands, what things are called, what can be repeated."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .code import frames, searching, tracing
from .inventory import ledger, modules
from .origin import nonfinite, replay
from .origin.replay import Call, Calls
from .ranks import flight
from .record.ring import Ring
from .watch import cpu
from .watch.session import Session

if TYPE_CHECKING:
    import re
    import weakref
    from collections.abc import Callable, Sequence, Set
    from types import CodeType, FrameType

    from .events import NonFinite


class Tools(Session):
    """What probes may ask for: answers, and what keeps answers."""

    older: list[weakref.ref[Any]] | None = None  # modules and optimizers from before the watch, once looked for
    _norms: tuple[tuple[int, ...], bool, Any] = (), False, None  # of whose turn, whether apart, what was computed

    def caller(self, within: Callable[[FrameType], bool] | None = None) -> tuple[str, int]:
        """File (relative to the working folder where it lies below) and line of the nearest frame of the user's code;
        ("", 0) when there is none. Frames of which WITHIN is true are passed over.
        """
        return frames.caller(within)

    def frame(self, start: FrameType | None = None) -> FrameType | None:
        """The nearest frame of the user's code, from START outwards; keep it no longer than the call that asks."""
        return frames.nearest(start or sys._getframe(1))

    def path_of(self, code: CodeType | str) -> str | None:
        """The file of CODE, or one of that name, as the user would write it; None for what is no code of the user's."""
        return frames.path_of(code)

    def callers(self, most: int) -> list[tuple[str, int]]:
        """As `caller`, the nearest MOST frames of the user's code, the innermost first."""
        return frames.callers(most)

    def line_of(self, number: float, near: re.Pattern[str]) -> tuple[str, int]:
        """The one line of the user's files that writes NUMBER, of several the one that NEAR is found in; ("", 0) where
        there is none. It reads all files that are loaded.
        """
        return searching.line_of(number, near)

    def lines_with(self, pattern: re.Pattern[str], most: int) -> list[tuple[str, int]]:
        """The lines of the user's files in which PATTERN is found; none where these are more than MOST."""
        return searching.lines_with(pattern, most)

    def follow(self, changed: Callable[[], bool]) -> tracing.Follower:
        """Follows the user's lines until CHANGED says that one of them has done it, or until it is stopped: dear."""
        return tracing.Follower(changed)

    def visits(self, wanted: Sequence[tuple[FrameType, Set[int]]]) -> tracing.Visits:
        """Follows frames that are running, to see which of some lines of each are reached: dear, so stop it soon."""
        return tracing.Visits(wanted)

    def module_name(self, part: Any) -> str | None:
        """The path of a module or parameter below its root module; a root is called by its class."""
        return modules.name_of(part, self.roots)

    def calls(self) -> Calls:
        """An empty list that keeps forward passes of root modules, so that they can be repeated."""
        return Calls()

    def leaves(self, roots: Any) -> list[Any]:
        """The tensors that a backward from ROOTS gives gradients to; walks the whole graph."""
        return nonfinite.leaves(roots)

    def with_gradient(self, optimizer: Any) -> list[Any]:
        """The optimizer's parameters whose gradients one fused call can take."""
        return ledger.with_gradient(optimizer)

    def norms(self, optimizer: Any, *, apart: bool = False) -> Any:
        """Norms of those gradients, not yet waited for, of each (APART) or as costs less; None without any.

        Whoever asks while the optimizer is about to step gets what another probe has asked for in the same turn.
        """
        turn = id(optimizer), self.step, self.phases.turns, self.phases.count("backwards")
        asked, were_apart, found = self._norms
        if asked != turn or (apart and not were_apart):
            found = ledger.norms(optimizer, apart=apart)
            self._norms = turn, apart, found
        return found

    def ledger(self, optimizer: Any, number: int = 0) -> ledger.Ledger:
        """Counts of backward passes and steps for an optimizer that is built now, or was as the first, second … before
        the watch began.
        """
        return ledger.Ledger(optimizer, (ledger.BEFORE, number) if number else self.caller())

    def alive(self, kind: type) -> list[Any]:
        """The modules or optimizers of KIND that are older than the watch; a job watched from its start has none."""
        if self.midway and self.older is None:
            self.older = modules.live_objects()  # one look for all probes: a notebook may hold millions of objects
        return [each for ref in self.older or () if (each := ref()) is not None and issubclass(type(each), kind)]

    def waited(self) -> int:
        """Nanoseconds so far, for which this thread waited for a CPU; 0 where the system does not tell."""
        return cpu.waited()

    def waited_beside(self) -> int:
        """Nanoseconds so far, for which all threads but this one waited for a CPU; 0 where the system does not tell."""
        return cpu.waited_beside()

    def collectives(self, last: int) -> list[flight.Entry]:
        """The LAST collectives that this process has begun, the oldest first."""
        return flight.entries(last)

    def why_forward(self, calls: Calls, roots: list[Any]) -> NonFinite:
        """The operation that made the loss in ROOTS not finite, found by repeating CALLS; its stage says what it is."""
        return nonfinite.why_forward(calls, roots)

    def why_backward(self, calls: Calls) -> NonFinite:
        """The operation whose derivative made a gradient not finite, found by repeating CALLS."""
        return nonfinite.why_backward(calls)

    def ring(self, name: str, rows: int) -> Ring:
        """The last ROWS lines of something, in the file NAME of the run's folder, which a sudden end leaves whole."""
        return Ring(f"{self.writer.folder}/{name}", rows)

    def is_mask(self, tensor: Any) -> bool:
        """Whether what is not finite in TENSOR is minus infinity beside one and the same number."""
        return nonfinite.is_mask(tensor)

    def why_not_repeated(self, call: Call) -> str:
        """Why a forward pass of a healthy job cannot be repeated without a trace; empty when it can."""
        return replay.why_not(call)

    def seconds_of(self, call: Call, *, autocast: bool) -> float:
        """Seconds of one repeated forward pass, with autocast as it was or without."""
        return replay.seconds_of(call, autocast=autocast)

"""One watched process: how far it is, who listens to what, and what each part of the machinery may ask of it."""

from __future__ import annotations

from _thread import get_ident
from operator import itemgetter
from time import perf_counter_ns as now
from time import sleep
from typing import TYPE_CHECKING, Any

from ..accelerator import accelerator
from ..code.interrupts import is_asynchronous
from ..events import ProbeOff, replace
from ..inventory.modules import Roots
from ..inventory.scaling import Scaling
from .governor import Governor
from .listeners import MACHINERY, Listeners
from .reads import Late

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..events import Event
    from ..record.writer import Writer
    from .listeners import Listening
    from .phases import Phases
    from .threads import Watched

EVENTS = (
    "built",  # (optimizer): it has its parameters; told to sampled probes at any time
    "begun",  # (loader, given): a pass over a DataLoader begins, which has given so many batches so far
    "fetching",  # (): a batch, or a pass over a loader, is about to be asked for
    "batch",  # (loader, batch): a DataLoader delivered
    "forward",  # (module, args, kwargs): a root module is about to run
    "forwarded",  # (module, output)
    "aside",  # (module, args, kwargs): it is about to run as few steps of a training let it run, see roots.py
    "asided",  # (module, output)
    "backward",  # (roots): torch.autograd.backward is about to run on a tuple of tensors
    "backwarded",  # (roots)
    "failed",  # (phase, error): a pass in training has raised an error, which goes on to the job
    "stepping",  # (optimizer): it is about to update
    "stepped",  # (optimizer)
    "skipped",  # (optimizer, scaler): a GradScaler held the update back
    "rescaled",  # (scaler): a GradScaler has updated its scale
    "clipping",  # (call, parameters, limit, norm): gradients are clipped; the norm is None for a clip by value
    "iterated",  # (step): a step has ended and has been recorded
    "watching",  # (): a window of steps begins that sampled probes see; what they noted before is out of date
    "ending",  # (): the job is ending, or the probes leave it
)
RETIRING = 1000  # milliseconds that another thread waits for a probe to end
ALWAYS = "always on"  # whoever listens between the windows, whose shares are not told apart then


class Session:
    """What the parts of the machinery are given: they know each other through it alone, and nothing of Job above it.

    step: the current step, from 0. rank: of this process, from 0. roots: the outermost modules seen so far.
    idle: nothing is watched now, because a listener runs, the probes have left, or another thread is the watched one.
    learning: a root module runs now, in a pass that began with gradients.
    loss: the value of the first root of the last backward, or of the one under way, before any loss scaling; None where
    it is no plain number on the CPU.
    retaining: whether that backward was told to retain its graph and not to make another.
    placing: the probe that is being placed. compiling: whether a compiler is tracing this very call.
    accelerator: the device beside the host.
    retired: all probes have been taken away, since two threads learn.
    phases: where the time of a step goes, which is the clock itself. watched: the thread that is. Whoever composes a
    session sets both, since they are made of it.
    """

    phases: Phases
    watched: Watched

    def __init__(self, writer: Writer, steps: int | None = None, *, midway: bool = False) -> None:
        self.writer = writer
        self.steps = steps
        self.midway = midway
        self.step, self.left, self.retired = 0, False, False
        self.loss: float | None = None
        self.retaining = self.learning = False
        self.roots = Roots()
        self.compiling: Callable[[], bool] = bool  # until torch can tell
        self.lost: dict[str, str] = {}  # probes that are off, and why
        self.accelerator = accelerator
        self.late = Late()
        self.scaling = Scaling()
        self.governor = Governor()
        self._always = self.governor.account(ALWAYS)
        self.placing = MACHINERY
        self._idle = False
        self.batches_of: Callable[[Any], int] = lambda _loader: 0  # that a loader has given so far
        self.loader_of: Callable[[Any], Any] = lambda _iterator: None
        self.modes: Callable[[], int] = int  # how many dispatch modes are active, until torch can tell
        self.pause: Callable[[bool], bool] | None = None  # of what a simulated device counts
        self.profiles: Callable[[], bool] = bool  # whether a profiler of the job records, until torch can tell
        self.discreet: set[str] = set()  # probes that compute nothing that either would see
        self.veiled = dict.fromkeys(("mode", "profiler"), 0)  # events at which no other listener was called
        self.listeners = Listeners(EVENTS, self.governor)
        self._undo: dict[str, list[tuple[int, Callable[[], None]]]] = {}  # by probe, with the order of placing
        self._placed = 0

    @property
    def idle(self) -> bool:
        return self._idle or (get_ident() != self.watched.thread and not self.watched.passes())

    @idle.setter
    def idle(self, now: bool) -> None:
        self._idle = now

    @property
    def rank(self) -> int:
        return self.writer.rank

    def on(self, event: str, listener: Callable[..., None]) -> None:
        """Calls LISTENER at every EVENT; raises KeyError for an event that there is not."""
        self.listeners.add(event, self.placing, listener)

    def listen(self, *listeners: Callable[..., None]) -> None:
        """Calls each of LISTENERS at the event whose name it has; raises KeyError as `on` does."""
        for listener in listeners:
            self.on(listener.__name__, listener)

    def record(self, event: Event) -> None:
        """Appends EVENT to this rank's file, at once, with the current step unless it names another; raises TypeError
        for values that JSON has not.
        """
        # a copy: probes keep an event, count on in it and record it again, and a line may wait until the file is open
        self.writer.write(replace(event, step=vars(event).get("step", self.step)))

    def undo(self, callback: Callable[[], None]) -> None:
        """Calls CALLBACK when the probe that is being placed is switched off or leaves."""
        self._placed += 1
        self._undo.setdefault(self.placing, []).append((self._placed, callback))

    def fire(self, event: str, *arguments: Any) -> None:
        """Tells the listeners, whose time is booked as the probes' own."""
        listeners = self.listeners.now[event]
        if not listeners or self._idle:
            return
        if self.is_observed():
            listeners = self._unseen(listeners)
        if not listeners or (get_ident() != self.watched.thread and not self.watched.passes()):
            return
        governor, closely = self.governor, self.listeners.closely
        began = last = now()
        self._idle = True
        try:
            for account, listener in listeners:
                try:
                    listener(*arguments)
                except Exception as error:  # whatever a probe does, the job goes on
                    if is_asynchronous(error):
                        raise
                    self.switch_off(account.probe, error)
                if closely:
                    ended = now()
                    account.nanoseconds += ended - last
                    last = ended
        finally:
            self._idle = self.left
            ended = now()
            self.phases.book("probes", ended - began)
            if not closely:
                self._always.nanoseconds += ended - began
            governor.spend(ended - began)

    def resume(self) -> None:
        """Tells probes that have left out steps that a window begins for them."""
        computing = self.governor.computing
        told = tuple(each for each in self.listeners.now["watching"] if each[0].probe in computing)
        self.listeners.now = {**self.listeners.now, "watching": told}
        self.fire("watching")
        self.listeners.choose()

    def is_observed(self) -> bool:
        """Whether a TorchDispatchMode or a profiler of the job's own would see what probes compute, and count it."""
        return self.profiles() or self.modes() > 0

    def _unseen(self, listeners: Listening) -> Listening:
        """Those of LISTENERS whose work a mode or profiler that is on does not see."""
        self.veiled["mode" if self.modes() else "profiler"] += 1
        return tuple(each for each in listeners if each[0].probe in self.discreet)

    def safely(self, function: Callable[..., None], *arguments: Any) -> None:
        """Calls a part of the machinery itself: when that fails, all watching ends, and the job goes on."""
        try:
            function(*arguments)
        except Exception as error:  # our fault must not become the job's
            if is_asynchronous(error):
                raise
            self.left = self.idle = True
            self._lose(MACHINERY, error)

    def place(self, probe: str, put: Callable[..., object]) -> None:
        """Lets PUT subscribe and wrap as PROBE; when it raises, whatever it had placed is taken back."""
        if self.retired and probe.partition("/")[0] != MACHINERY:
            return
        outer, self.placing = self.placing, probe
        try:
            put(self)
        except Exception as error:  # noqa: BLE001 - a hook that cannot be placed is recorded, the job goes on
            self.switch_off(probe, error)
        finally:
            self.placing = outer

    def switch_off(self, probe: str, error: BaseException) -> None:
        """Takes away all that PROBE has placed, and records why."""
        self.withdraw(probe)
        self._lose(probe, error)

    def withdraw(self, probe: str) -> None:
        """Takes away all that PROBE has placed: it has seen what it wanted, or cannot."""
        self.listeners.drop(probe)
        self._take_back(self._undo.pop(probe, []))

    def retire(self) -> None:
        """Takes away all probes, in a thread that is not the watched one, and waits for one that is at work there."""
        self.retired = True
        self.dismiss()
        for _ in range(RETIRING):
            if not self._idle or self.left:
                break
            sleep(0.001)
        self.dismiss()  # what was being placed meanwhile

    def dismiss(self) -> None:
        """Takes away all probes: the machinery goes on alone."""
        for probe in self.listeners.probes() | {*self._undo}:
            if probe.partition("/")[0] != MACHINERY:
                self.withdraw(probe)

    def matters(self) -> None:
        """Something that belongs to a training or inference loop happens: from here on lines go to the file.

        A worker of a DataLoader is no such loop, whatever it runs.
        """
        if self.writer.opened or self.writer.off:
            return
        from torch.utils.data import get_worker_info

        if get_worker_info() is None:
            self.writer.open()
        else:
            self.left = self.idle = True

    def tidy(self) -> None:
        """Removes every hook once the probes have left: called where no loop over hooks is under way."""
        if self.left and self._undo:
            callbacks, self._undo = [each for placed in self._undo.values() for each in placed], {}
            self._take_back(callbacks)

    def _lose(self, probe: str, error: BaseException) -> None:
        self.lost[probe] = f"{type(error).__name__}: {error}"[:500]
        self.record(ProbeOff(probe=probe, why=self.lost[probe]))

    def _take_back(self, callbacks: list[tuple[int, Callable[[], None]]]) -> None:
        for _, callback in sorted(callbacks, key=itemgetter(0), reverse=True):  # the last first
            callback()

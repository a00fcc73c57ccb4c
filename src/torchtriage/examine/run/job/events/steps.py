"""What the machinery writes: who runs, each step, and what went wrong with the watch itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .event import Event

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Start(Event):
    """The first line of a rank's file: what is known before the first step.

    time: nanoseconds since 1970. cpus: of the host. threads: of torch. local_rank: among the processes of the host.
    restart: how often the launcher has started the job anew. launcher: its token.
    """

    pid: int | None = None
    rank: int | None = None
    world_size: int = 1
    local_rank: int | None = None
    host: str | None = None
    restart: int = 0
    launcher: str | None = None
    time: int = 0
    versions: Mapping[str, str | None] = {}
    platform: str = ""
    cpus: int | None = None
    threads: int | None = None
    devices: Sequence[Mapping[str, Any]] = ()
    argv: Sequence[str] = ()
    script: Mapping[str, Any] | None = None
    environment: Mapping[str, str] = {}


class Setup(Event):
    """What models, optimizers, loaders and batches the job has: described in job/hooks/setup.py; written after its
    first step.
    """

    loaders: Sequence[Mapping[str, Any]] = ()
    optimizers: Sequence[Mapping[str, Any]] = ()
    models: Sequence[Mapping[str, Any]] = ()
    batch: Any = None
    inputs: Any = None
    precision: Mapping[str, Any] | None = None
    scaled: bool = False


class Step(Event):
    """A step that has ended. Times in seconds, memory in bytes.

    start: since 1970. cpu: CPU time of the thread that ends the steps. queued: for which it waited for a CPU. batches,
    epochs, forwards, backwards, skipped: how many there were. loss: of loss_step, where that is another step.
    boundary: what ended it. rested: steps just before it that nobody watched, of which no more is recorded than what
    they took, the passes over loaders that began in them, and their losses. is_at_rest: it is one of those. rss:
    resident on the host. allocated, peak, reserved: on the device.
    """

    start: float = 0.0
    seconds: float = 0.0
    cpu: float = 0.0
    queued: float = 0.0
    data: float = 0.0
    transfer: float = 0.0
    forward: float = 0.0
    backward: float = 0.0
    optimizer: float = 0.0
    communication: float = 0.0
    idle: float = 0.0
    probes: float = 0.0
    batches: int = 0
    epochs: int = 0
    forwards: int = 0
    backwards: int = 0
    skipped: int = 0
    loss: float | None = None
    loss_step: int | None = None
    scale: float | None = None
    boundary: str = "optimizer"
    rested: int = 0
    rested_seconds: float = 0.0
    rested_epochs: int = 0
    rested_losses: Sequence[float] = ()
    is_at_rest: bool = False
    rss: int | None = None
    allocated: int | None = None
    peak: int | None = None
    reserved: int | None = None

    def spent(self, phase: str) -> float:
        """Seconds in PHASE, 0 where nothing was booked."""
        return float(vars(self).get(phase) or 0)


class Rested(Step):
    """At the end of a job: the steps before this one that nobody watched, and that no step has told of."""


class Device(Step):
    """A step as the device's own timeline has it.

    busy: seconds outside of data, transfer and communication in which it certainly had work; in the rest it may have
    had some, too. host_paced: seconds outside of those, in phases at whose begin and end it had done all that it was
    asked for. overhead: seconds that probes took of the host's time. is_quiet: no probe has had the device compute but
    for a number or two. waits: for collectives, in their order: (path,
    line, call, bytes where they are known, seconds, seconds for which it certainly waited for nothing else, as for a
    slow host); the seconds add up to the phase communication.
    """

    has_time = True

    at: int = 0
    other: float = 0.0
    busy: float | None = None
    host_paced: float = 0.0
    overhead: float = 0.0
    is_quiet: bool = False
    waits: Sequence[Sequence[Any]] = ()


class Utilization(Event):
    """The SHARE of a past period in which a kernel ran on the device, as the device tells it at the end of step AT.

    since: steps that have ended since it was asked before. elsewhere: bytes of it that are not this process's.
    """

    has_time = True

    at: int = 0
    since: int = 0
    share: float = 0.0
    elsewhere: int = 0


class HostWaits(Event):
    """Calls of step AT that made the host wait for the device.

    waits: of each line and call, (path, line, call, times, seconds of the host in it, seconds for which the device in
    it and after it certainly had nothing to do, other than for lack of a batch, seconds by which the step would be
    shorter at least without it, seconds in which the device did nothing but copy, seconds of the wait for which the
    device certainly worked). path is "" where a library called, and after
    a pass that was no training's. is_counted: the device tells when it had nothing to do; where it does not, idle time
    after a wait, and what it costs, are not counted.
    """

    has_time = True

    at: int = 0
    waits: Sequence[Sequence[Any]] = ()
    is_counted: bool = True


class CopyRaces(Event):
    """The host has used memory of non-blocking copies in step AT before the device had ended them.

    races: of each pair of lines, (path, line and call of the copy, "host" or "device" where it goes, path, line and
    call of what read or overwrote the memory, times).
    """

    at: int = 0
    races: Sequence[Sequence[Any]] = ()


class StreamUses(Event):
    """A forward pass of step AT was given what another stream had copied to the device.

    uses: of each copy, (path, line, call, seconds for which it went on after the device had begun with the pass; 0
    where the pass came later).
    """

    has_time = True

    at: int = 0
    uses: Sequence[Sequence[Any]] = ()


class Clock(Event):
    """A better boundary of steps has appeared: they are numbered from 0 again."""

    boundary: str


class Cost(Event):
    """At the end: what each probe cost, in microseconds; of how many steps sampled probes watched how many."""

    microseconds: Mapping[str, int] = {}
    watched: int = 0
    of: int = 0


class End(Event):
    """The job came to its end, or the probes left: why."""

    why: str | None = None


class ProbeOff(Event):
    """A probe was switched off, since it raised."""

    probe: str
    why: str


class Veiled(Event):
    """At so many events nothing that computes was called, since the job's own profiler or dispatch mode recorded."""

    events: int
    by: str


class Thread(Event):
    """Two threads learn: the probes have left."""


class Thinned(Event):
    """Lines of a kind, or of all, are no longer all written."""

    of: str
    after: int


class Slow(Event):
    """The job waited so many seconds for the disk that holds the record: the record ends."""

    seconds: float

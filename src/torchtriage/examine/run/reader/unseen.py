"""What a run could not see, why, and what would let it see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.run.job.events import (
    Attached,
    Collectives,
    Ended,
    Launcher,
    Meeting,
    ProbeOff,
    ProbesFailed,
    Rehearsal,
    Sharded,
    Slow,
    Start,
    Thinned,
    Thread,
    Torch,
    TorchNotFollowed,
    Veiled,
    Wrapper,
)
from torchtriage.examine.run.ranks.deaths import END, deaths, started_late

if TYPE_CHECKING:
    from torchtriage.examine.run.record import Log, RankRecord

__all__ = ["END", "unseen", "world_size"]


def unseen(ranks: Sequence[RankRecord], notes: Log, left_out: Mapping[int, int]) -> Iterator[Inconclusive]:
    """NOTES: of all Python processes of the job; LEFT_OUT: processes by rank that were not read."""
    yield from _failed(notes)
    yield from _still_running(notes)
    ended = notes.first(Ended) or Ended()
    if not ranks:
        yield _no_record(notes, ended)
        return
    for rank, number in left_out.items():
        yield Inconclusive(
            "run/processes",
            f"{number + 1} processes called themselves rank {rank}: only the one with the most steps was read",
            "What the others did is not judged. Run the one that you mean by itself, as a command of its own.",
        )
    for record in ranks:
        yield from _of_rank(record)
    yield from deaths(ranks, {record.rank: _ended(record, notes, ended) for record in ranks})
    yield from started_late(ranks)
    yield from _communication(ranks)
    yield from _missing_ranks(ranks)


def _failed(notes: Log) -> Iterator[Inconclusive]:
    for why in sorted({each.why for each in notes.all(ProbesFailed)}):
        yield Inconclusive(
            "run/attach", f"the probes could not be put into the job: {why}", "Report it with the job's torch version."
        )
    for why in sorted({each.why for each in notes.all(TorchNotFollowed)}):
        yield Inconclusive("run/attach", f"torch is imported in an unusual way: {why}", "Install torch from a wheel.")


def _still_running(notes: Log) -> Iterator[Inconclusive]:
    """Of several launchers of one job, those that had not ended when it was judged."""
    ended = {each.launcher for each in notes.all(Ended)}
    there = notes.all(Launcher)
    hosts = sorted(str(each.host) for each in there if each.launcher not in ended)
    if hosts:
        yield Inconclusive(
            "run/launchers",
            f"{len(hosts)} of {len(there)} launchers had not ended when the run was judged: {', '.join(hosts[:8])}",
            "What their ranks had recorded by then has been judged. `torchtriage read` judges the folder again.",
        )


def _ended(record: RankRecord, notes: Log, one: Ended) -> Ended:
    """What the launcher of RECORD says of its end: ONE, where there is one launcher; nothing while it runs."""
    launcher = (record.first(Start) or Start()).launcher
    several = [each for each in notes.all(Ended) if each.launcher]
    return next((each for each in several if each.launcher == launcher), Ended()) if several else one


def _no_record(notes: Log, ended: Ended) -> Inconclusive:
    if notes.has(Torch):
        return Inconclusive(
            "run/steps",
            "the job imported torch, but no batch, forward pass, backward pass or optimizer step was seen",
            "Run the command that trains, long enough for a first step. A step that torch.compile takes as a whole is "
            "not seen from inside: compile the model instead, for this run.",
        )
    if notes.has(ProbesFailed) or notes.has(TorchNotFollowed):
        return Inconclusive("run/record", "no process of the job could be watched", "Solve what is said of run/attach.")
    if notes.has(Attached) and ended.code:
        how = ended.signal or f"exit code {ended.code}"
        ran, way_out = "", "Solve what the job itself says first."
        if ended.python:  # torchtriage lives in an environment that is not activated
            ran = f"; it ran with {ended.python}, the python on PATH"
            way_out += (
                " If it lacks packages that torchtriage's own environment has, activate that, or name its "
                f"interpreter: torchtriage run -- {ended.own} SCRIPT"
            )
        return Inconclusive("run/torch", f"the job ended with {how} before it imported torch{ran}", way_out)
    if notes.has(Attached):
        return Inconclusive(
            "run/torch", "the job never imported torch", "Run the command that trains, in the environment with torch."
        )
    return Inconclusive(
        "run/attach",
        "no Python process of the job took the probes up: python -I, -E or -S, an emptied PYTHONPATH, a Python older "
        "than 3.8, or no Python",
        "Start the job with plain `python`, without -I, -E and -S, and let PYTHONPATH through to it.",
    )


def _of_rank(record: RankRecord) -> Iterator[Inconclusive]:
    for event in record.all(ProbeOff):
        yield Inconclusive(
            f"run/{event.probe}",
            f"the probe was switched off at step {event.step} on rank {record.rank}: {event.why}",
            "Report it with the job's torch version; the other probes went on.",
        )
    steps = record.every_step
    if not steps:
        yield Inconclusive(
            "run/steps",
            f"rank {record.rank} was seen, but it ended no step",
            "Let the job reach its first optimizer step; in a loop without one, let it call the model 8 times or more.",
        )
    for slow in record.all(Slow):
        host = (record.first(Start) or Start()).host
        yield Inconclusive(
            "run/record",
            f"the record of rank {record.rank}{f' on {host}' if host else ''} ends early: the job waited "
            f"{slow.seconds} s for the disk that it is written to, and went on without",
            "Put the run's folder on a faster disk with --out.",
        )
    for thinned in record.all(Thinned):
        yield Inconclusive(
            "run/record", _thinned(record, thinned), "Judge a shorter run: --steps N leaves the job early."
        )
    if record.has(Thread):
        yield Inconclusive(
            "run/threads",
            f"two threads of rank {record.rank} learned at the same time: of the one that began first the times were "
            "taken; to look at what the other one writes would be a risk to the job",
            "Train one model at a time, or each in a process of its own.",
        )
    for veiled in record.all(Veiled):
        aid, way_out = _OBSERVERS[veiled.by]
        yield Inconclusive(
            "run/modes",
            f"{aid} of the job was on at {veiled.events} events of rank {record.rank}: no probe looked then, for it "
            "would have seen the probe's operations",
            f"Run the job without {way_out} to see the rest.",
        )
    yield from _blind_spots(record)


_OBSERVERS = {
    "mode": ("a TorchDispatchMode", "the mode (FakeTensorMode, FlopCounterMode, a logging mode)"),
    "profiler": ("a profiler", "it, or with it on for fewer steps,"),
}
"""What of the job's own sees operations of torch, and what to run it without."""


def _thinned(record: RankRecord, event: Thinned) -> str:
    if event.of == "all":
        return f"the record of rank {record.rank} has reached {event.after} bytes: what came later is not in it"
    return (
        f"rank {record.rank} had more than {event.after} lines of the kind {event.of}: "
        "of those that came later, ever fewer were written"
    )


def _blind_spots(record: RankRecord) -> Iterator[Inconclusive]:
    steps = record.every_step
    if any(row.allocated for row in steps) and not record.on_device and not record.has(Rehearsal):
        yield Inconclusive(
            "run/device-time",
            f"the phases of rank {record.rank} are times of the host, which runs ahead of the device; copies to the "
            "device and its idle time are not told apart",
            "Profile ten steps with torch.profiler: its trace shows copies and gaps on the device's own timeline.",
        )
    for sharded in record.all(Sharded)[:1]:
        yield Inconclusive(
            "run/gradients",
            f"{sharded.parts} of {sharded.of} parameters of {sharded.optimizer} on rank {record.rank} "
            "are divided among ranks (DTensor): the norm of their gradients takes a collective, which no probe begins, "
            "and no pass is repeated on one rank",
            "Log what torch.nn.utils.clip_grad_norm_ returns, the norm of all (a limit of infinity clips nothing).",
        )


def _communication(ranks: Sequence[RankRecord]) -> Iterator[Inconclusive]:
    """What of waiting for other ranks is not told apart from computing."""
    first = ranks[0]
    if world_size(ranks) < 2:
        return
    if any(row.allocated for row in first.every_step):
        if any(device.waits for rank in ranks for device in rank.on_device):
            return  # whoever asks says what the devices' own clocks do not tell
        yield Inconclusive(
            "run/communication",
            "the host only queues collectives for the device: when they run, and what hides them, it does not know",
            "Profile the same ten steps on every rank with torch.profiler and compare when each enters a collective.",
        )
    elif not any(event.rows for record in ranks for event in record.all(Collectives)) and _meet(ranks):
        yield Inconclusive(
            "run/communication",
            "no collective of a training step was found in torch's Flight Recorder: waiting for other ranks within the "
            "backward pass is counted as backward",
            "Use a torch that records collectives of this backend (2.10 or later for gloo), leave "
            "TORCH_FR_BUFFER_SIZE as it is, and let the job come to its end or to step 64.",
        )


def _meet(ranks: Sequence[RankRecord]) -> bool:
    """Whether a wrapper, or the job itself, has asked for collectives."""
    return any(record.has(Wrapper) or record.has(Meeting) for record in ranks)


def _missing_ranks(ranks: Sequence[RankRecord]) -> Iterator[Inconclusive]:
    world = world_size(ranks)
    missing = sorted(set(range(world)) - {each.rank for each in ranks})
    if missing:
        yield Inconclusive(
            "run/ranks",
            f"{len(missing)} of {world} ranks left no record: {', '.join(map(str, missing[:8]))}",
            "Put the run's folder on a disk that all nodes share, and start every node under torchtriage.",
        )


def world_size(ranks: Sequence[RankRecord]) -> int:
    """How many ranks the job has, by what the largest of them says."""
    return max((start.world_size for each in ranks for start in each.all(Start)), default=1)

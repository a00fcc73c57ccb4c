"""Conducts the three legs of a trial of resuming: stopped, resumed, uninterrupted."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from torchtriage.core.errors import NOTHING_EXAMINED, TriageError
from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.trial.leg.execute import Ended, Leg, elsewhere, execute, refusal, say
from torchtriage.examine.trial.leg.mirror import Mirror, mirrored
from torchtriage.examine.trial.resume.beside import beside, origin
from torchtriage.examine.trial.resume.record import Record, ranks
from torchtriage.examine.trial.resume.trial import Resumed, Trial

JOB = Path(__file__).resolve().parent / "job"
GRACE = 30.0  # seconds for a job that saves once it is told to end
MEETING = 10.0  # seconds that the other ranks have to come to the stop
_DEVICE = re.compile(r"cuda|nvidia|hip error|no gpu|mps|xpu", re.I)


@dataclass(frozen=True)
class Wanted:
    """What is to be tried. after: turns of the optimizer until the stop, None for soon after the first checkpoint;
    again: what the resumed leg has behind its command; until: turns at which all is over; timeout: seconds of a leg;
    source: the folder that is mirrored, None for the working folder.
    """

    command: tuple[str, ...]
    folder: Path
    after: int | None = None
    again: str = ""
    until: int | None = None
    timeout: float | None = None
    keep: bool = False
    source: Path | None = None


Run = Callable[[Leg], Ended]


def conduct(wanted: Wanted, run: Run = execute) -> Trial:
    """Runs the legs in mirrors of the working folder and compares them. RUN: how one leg is executed.

    Raises TriageError where a leg shows nothing: the job fails, makes no checkpoint, never resumes.
    """
    with _mirror(wanted, "interrupted") as first, _mirror(wanted, "whole") as other:
        at = f"step {wanted.after}" if wanted.after is not None else "its first checkpoint"
        say(f"leg 1 of 3: {shlex.join(wanted.command)}, stopped after {at}")
        stopped = _stopped(wanted, first, run)
        again = replace(wanted, command=(*wanted.command, *shlex.split(wanted.again)))
        say(f"leg 2 of 3: {shlex.join(again.command)}, in the folder that the first has left")
        resumed = _resumed(again, first, stopped, run)
        say(f"leg 3 of 3: {shlex.join(wanted.command)}, uninterrupted")
        whole, unseen = _whole(wanted, other, run)
        _tell(stopped, whole)
        return _compared(stopped, resumed, whole, unseen)


def _tell(*legs: Leg | None) -> None:
    """What has become of files outside of the legs' folders."""
    for leg in legs:
        if leg is not None:
            new = elsewhere(leg.mirror)
            if new:
                say(f"the {leg.name} leg has made files outside of its folder: {', '.join(new[:5])}")
            for path in leg.mirror.changed():
                say(f"{path} has changed meanwhile: something wrote to it that is no Python")


def _mirror(wanted: Wanted, name: str) -> AbstractContextManager[Mirror]:
    return mirrored(wanted.folder / "legs" / name, wanted.source, keep=wanted.keep)


def _compared(stopped: Leg, resumed: Leg, whole: Leg | None, unseen: tuple[Inconclusive, ...]) -> Trial:
    found: list[Resumed] = []
    lost = list(unseen)
    stood, went = (tuple(Record(leg.record, rank) for rank in ranks(leg.record)) for leg in (stopped, resumed))
    for first, again in zip(stood, went, strict=False):
        rank = first.rank
        one = beside(first, again, Record(whole.record, rank) if whole is not None else None, (stood, went))
        if one is not None:
            found.append(one)
            lost += _not_repeated(one)
        else:
            why = f"rank {rank}: no state of the stopped leg is that with which the resumed leg goes on"
            lost.append(Inconclusive("trial/resume", why, "Stop after another step, soon after a checkpoint."))
    return Trial(tuple(found), tuple(lost))


def _not_repeated(one: Resumed) -> list[Inconclusive]:
    """A job that differs from itself: said first, with how much, and with what holds all the same."""
    repeat = one.repeat
    if repeat.apart is None:
        return []
    losses = [f"{loss:.6g}" for loss in repeat.losses if isinstance(loss, float)]
    told = f" (loss {' and '.join(losses)})" if len(set(losses)) == 2 else ""
    why = (
        f"rank {one.rank}: the job does not repeat itself: two runs differ from pass {repeat.apart + 1} on, first "
        f"in its {' and '.join(repeat.what)}{told}; the state at the first resumed step was compared with that of the "
        "very run that was resumed, which holds all the same; how it goes on after the stop cannot be compared"
    )
    do = "Seed all that the job draws from; `torchtriage repro -- CMD` tells where it begins."
    return [Inconclusive("trial/resume", why, do)]


def _stopped(wanted: Wanted, mirror: Mirror, run: Run) -> Leg:
    stop = {"TORCHTRIAGE_STOP": str(wanted.after)} if wanted.after is not None else {"TORCHTRIAGE_SOON": "1"}
    leg = _leg("stopped", wanted, mirror, {"TORCHTRIAGE_STATES": "written", **stop})
    ended = run(leg)
    _began(leg, ended)
    record = Record(leg.record, ranks(leg.record)[0])
    if not ended.stopped and not _halted(leg):
        _too_short(leg, ended, record, wanted.after)
    if not record.written():
        raise _problem(
            f"no checkpoint was written before the stop after step {record.turns}",
            leg,
            "Stop later, after its first checkpoint: --stop-after N, or let the job save more often.",
        )
    return leg


def _too_short(leg: Leg, ended: Ended, record: Record, after: int | None) -> None:
    if ended.code:
        raise _problem(
            f"the job failed with code {ended.code} after step {record.turns}: {_last(ended)}", leg, _mend(leg, ended)
        )
    if after is not None:
        do = "Stop earlier: --stop-after N, with N below that, and after its first checkpoint."
        raise _problem(f"the job ended after step {record.turns}, before the stop after step {after}", leg, do)
    written = record.written()
    what = "writes its only checkpoint at its end" if written else "wrote no checkpoint"
    do = "Let the job save while it trains, and stop it then: --stop-after N."
    raise _problem(f"the job {what}, after step {record.turns}: it cannot be resumed before that", leg, do)


def _resumed(wanted: Wanted, mirror: Mirror, stopped: Leg, run: Run) -> Leg:
    until = {}
    if wanted.until is not None:
        record = Record(stopped.record, ranks(stopped.record)[0])
        start = max((turn for _, turn in record.written().values()), default=0)
        until = {"TORCHTRIAGE_STOP": str(max(wanted.until - start, 1))}
    leg = _leg("resumed", wanted, mirror, {"TORCHTRIAGE_STATES": "0", **until})
    ended = run(leg)
    if ended.code and not ended.stopped and not ranks(leg.record):
        raise _problem(f"the resumed leg failed with code {ended.code}: {_last(ended)}", leg, _mend(leg, ended))
    _began(leg, ended)
    known = False
    for rank in ranks(leg.record):
        records = Record(stopped.record, rank), Record(leg.record, rank)
        _, unit = origin(*records)
        if not records[1].units:
            do = "Stop earlier, or give the job more epochs: what is to be compared comes after the resume."
            raise _problem("the resumed leg ended without a training step", leg, do)
        known = known or unit is not None
    if not known:
        written = sorted({Path(path).name for path in Record(stopped.record, ranks(stopped.record)[0]).written()})
        raise _problem(
            f"the resumed leg began anew: it read none of the files that the stopped one had written "
            f"({', '.join(written[:4])})",
            leg,
            'Say how the job resumes: --resume-args "--resume ckpt.pt", a path relative to its folder.',
        )
    return leg


def _whole(wanted: Wanted, mirror: Mirror, run: Run) -> tuple[Leg | None, tuple[Inconclusive, ...]]:
    until = {"TORCHTRIAGE_STOP": str(wanted.until)} if wanted.until is not None else {}
    leg = _leg("uninterrupted", wanted, mirror, until)
    ended = run(leg)
    if ranks(leg.record) and not ended.refused and (ended.stopped or not ended.code):
        return leg, ()
    why = f"the uninterrupted leg ended with code {ended.code}: {_last(ended)}"
    why = "the uninterrupted leg was ended when its time was over" if ended.late else why
    do = "Let the job run to its end by itself first; a longer --timeout, or --until STEP."
    if ended.refused:
        error = refusal(ended.refused, leg)
        why, do = f"{error.where}: {error.what}", error.do
    return None, (Inconclusive("trial/resume", why, do),)


def _leg(name: str, wanted: Wanted, mirror: Mirror, settings: dict[str, str]) -> Leg:
    leg = Leg(name, wanted.command, mirror, (JOB,), settings, wanted.timeout)
    return replace(leg, done=_Done(leg.record))


class _Done:
    """Whether all ranks of a leg have come to the stop, or one of them has waited long enough for the others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.since: float | None = None

    def __call__(self) -> bool:
        stopped, asked = list(self.folder.glob("stopped[0-9]*")), list(self.folder.glob("asked[0-9]*"))
        if not stopped and not asked:
            return False
        self.since = self.since if self.since is not None else time.monotonic()
        size = next((int(text) for path in stopped if (text := path.read_text() or "0").isdecimal()), 0)
        return bool(size and len(stopped) >= size) or time.monotonic() - self.since > (GRACE if asked else MEETING)


def _halted(leg: Leg) -> bool:
    return any(leg.record.glob("asked[0-9]*"))


def _began(leg: Leg, ended: Ended) -> None:
    """Raises TriageError where LEG has shown no step of a training."""
    if ended.refused:
        raise refusal(ended.refused, leg)
    if ended.late:
        do = "Give it longer with --timeout S, or stop it earlier with --stop-after N."
        raise _problem(f"its time was over after {leg.timeout:g} s", leg, do)
    units = any(Record(leg.record, rank).units for rank in ranks(leg.record))
    if not units and (leg.name == "stopped" or ended.code):
        how = f"failed with code {ended.code}: {_last(ended)}" if ended.code else "ended without a training step"
        raise _problem(f"the job {how}", leg, _mend(leg, ended))


def _last(ended: Ended) -> str:
    return ended.said[-1][:300] if ended.said else "it said nothing"


def _mend(leg: Leg, ended: Ended) -> str:
    if any(_DEVICE.search(line) for line in ended.said[-2:]):
        return "It asks for a device that is not here: choose the CPU, or run the trial where the device is."
    if leg.name == "resumed":
        return "Let --resume-args name what the stopped job has left in its folder, as when it is resumed by hand."
    return "Let the command run to its end by itself first."


def _problem(what: str, leg: Leg, do: str) -> TriageError:
    return TriageError(what, f"{leg.name} leg", do, NOTHING_EXAMINED)

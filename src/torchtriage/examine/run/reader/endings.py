"""The errors and deliberate exits that ended processes of a job, as these wrote them down themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from torchtriage.core.end import End
from torchtriage.core.evidence import Place
from torchtriage.examine.run.job.events import Ended, Error, Exit, Handled, Setup, Start
from torchtriage.examine.run.record import Log, RankRecord
from torchtriage.examine.run.record.crash import Crash, signal_of

_LAUNCHERS = frozenset({"ChildFailedError", "ProcessRaisedException", "ProcessExitedException", "SignalException"})
"""What launchers raise when a child has failed: the child's own error is the one to tell."""


def crashes(ranks: Iterable[RankRecord], notes: Log) -> tuple[Crash, ...]:
    """Of all processes, in the order in which they happened. NOTES: of those that recorded no rank.

    An error that a process caught and printed counts where nothing else failed, and the job ended with a code.
    """
    ranks = tuple(ranks)
    is_bad = any(each.code for each in notes.all(Ended))
    errors: list[Crash] = []
    for kind in (Error, Handled) if is_bad else (Error,):
        errors += [_of_rank(error, rank) for rank in ranks for error in rank.all(kind)]
        errors += [_crash(error, error.rank, error.pid) for error in notes.all(kind)]
        if any(each.type not in _LAUNCHERS for each in errors):
            break
    return tuple(sorted(errors, key=lambda each: each.time))


def _of_rank(error: Error, rank: RankRecord) -> Crash:
    step = rank.count if rank.every_step or rank.has(Setup) else None
    start = rank.first(Start)
    return replace(_crash(error, rank.rank, start.pid if start else None), step=step, is_of_rank=True)


def _crash(error: Error, rank: int | None, pid: int | None) -> Crash:
    kind, message = error.error or "Error", error.message
    place = f'  File "{error.path}", line {error.line}\n' if error.path else ""
    text = error.traceback or f"Traceback (most recent call last):\n{place}{kind}: {message}\n"
    operands = tuple((str(name), str(what)) for name, what in error.operands)
    if error.module and error.module_is and error.module_is not in {what for _, what in operands}:
        operands = ((error.module, error.module_is), *operands)
    return Crash(kind, message, text, rank, error.time, None, operands, error.module, pid)


def end_without_error(notes: Log, ended: Ended, step: int | None) -> End | None:
    """How a job ended badly that wrote down no error: a signal, or an exit code. ENDED: the launcher's own line."""
    code = ended.code
    if not code:
        return None
    exits = [each for each in notes.all(Exit) if each.code == code]
    name = signal_of(ended)
    if ended.signal or (name and not exits):
        return End("signal", name, place=_step_place(step), code=code, is_trained=step is not None)
    place = _step_place(step)
    if exits and exits[-1].path:
        place = Place(exits[-1].path, exits[-1].line or None, step=step)
    message = exits[-1].message if exits else ""
    return End("exit", message=message, place=place, code=code, is_trained=step is not None)


def _step_place(step: int | None) -> Place | None:
    return None if step is None else Place(step=step)

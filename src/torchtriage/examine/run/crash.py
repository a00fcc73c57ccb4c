"""The errors and deliberate exits that ended processes of a job, as these wrote them down themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from signal import Signals
from typing import TYPE_CHECKING

from torchtriage.core.end import End
from torchtriage.core.evidence import Place
from torchtriage.examine.run.job.events import Ended, Error, Exit, Handled, Setup, Start

if TYPE_CHECKING:
    from torchtriage.examine.run.record import Log, RankRecord

_LAUNCHERS = frozenset({"ChildFailedError", "ProcessRaisedException", "ProcessExitedException", "SignalException"})
"""What launchers raise when a child has failed: the child's own error is the one to tell."""
_SHOWN = 4  # operands in one sentence


@dataclass(frozen=True)
class Crash:
    """One uncaught error. time: nanoseconds since 1970. step: None in a process that ended no step.

    traceback: as the interpreter prints it, without our frames. operands: names on the raising line, with shape, dtype
    and device or the arguments of the module. module: the path of the module whose forward pass raised it.
    is_of_rank: the process had begun to train or to evaluate.
    """

    type: str
    message: str
    traceback: str
    rank: int | None = None
    time: int = 0
    step: int | None = None
    operands: tuple[tuple[str, str], ...] = ()
    module: str | None = None
    pid: int | None = None
    is_of_rank: bool = False

    @property
    def is_by_hand(self) -> bool:
        return self.type == "KeyboardInterrupt"

    @property
    def met(self) -> str:
        """The operands in words: "`self.head` is Linear(17, 2); `x` is (4, 16) float32 on cpu"."""
        return "; ".join(f"`{name}` is {what}" for name, what in self.operands[:_SHOWN])


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


def signal_of(ended: Ended) -> str:
    """The name of the signal that ended the job, also of one that its code tells; "" for none.

    A shell and a handler of the program's own end with 128 + the number of the signal.
    """
    if ended.signal:
        return ended.signal.partition(" ")[0]
    number = (ended.code or 0) - 128
    return Signals(number).name if number in set(Signals) else ""


def _step_place(step: int | None) -> Place | None:
    return None if step is None else Place(step=step)

"""The errors and deliberate exits that ended processes of a job, as these wrote them down themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from signal import Signals
from typing import TYPE_CHECKING

from torchtriage.core.end import End
from torchtriage.core.evidence import Place

if TYPE_CHECKING:
    from torchtriage.examine.run.record import Event, RankRecord

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


def crashes(ranks: Iterable[RankRecord], processes: Iterable[Event]) -> tuple[Crash, ...]:
    """Of all processes, in the order in which they happened. PROCESSES: the notes of those that recorded no rank.

    An error that a process caught and printed counts where nothing else failed, and the job ended with a code.
    """
    ranks, notes = tuple(ranks), tuple(processes)
    is_bad = any(each.get("kind") == "ended" and each.get("code") for each in notes)
    errors: list[Crash] = []
    for kind in ("error", "handled") if is_bad else ("error",):
        found = [_of_rank(event, rank) for rank in ranks for event in rank.all(kind)]
        found += [_crash(each, each.get("rank"), each.get("pid")) for each in notes if each.get("kind") == kind]
        errors += found
        if any(each.type not in _LAUNCHERS for each in errors):
            break
    return tuple(sorted(errors, key=lambda each: each.time))


def _of_rank(event: Event, rank: RankRecord) -> Crash:
    step = rank.count if rank.every_step or rank.all("setup") else None
    pid = next((start.get("pid") for start in rank.all("start")), None)
    return replace(_crash(event, rank.rank, pid), step=step, is_of_rank=True)


def _crash(event: Event, rank: int | None, pid: int | None) -> Crash:
    kind, message = str(event.get("error") or "Error"), str(event.get("message") or "")
    place = f'  File "{event["path"]}", line {event["line"]}\n' if event.get("path") else ""
    text = event.get("traceback") or f"Traceback (most recent call last):\n{place}{kind}: {message}\n"
    operands = tuple((str(name), str(what)) for name, what in event.get("operands") or ())
    module, own = event.get("module"), event.get("module_is")
    if module and own and own not in {what for _, what in operands}:
        operands = ((str(module), str(own)), *operands)
    return Crash(kind, message, text, rank, int(event.get("time") or 0), None, operands, module, pid)


def end_without_error(processes: Sequence[Event], ended: Event, step: int | None) -> End | None:
    """How a job ended badly that wrote down no error: a signal, or an exit code. ENDED: the launcher's own line."""
    code = ended.get("code")
    if not code:
        return None
    exits = [each for each in processes if each.get("kind") == "exit" and each.get("code") == code]
    name = signal_of(ended)
    if ended.get("signal") or (name and not exits):
        return End("signal", name, place=_step_place(step), code=code, is_trained=step is not None)
    place = _step_place(step)
    if exits and exits[-1].get("path"):
        place = Place(str(exits[-1]["path"]), int(exits[-1].get("line") or 0) or None, step=step)
    message = str(exits[-1].get("message") or "") if exits else ""
    return End("exit", message=message, place=place, code=code, is_trained=step is not None)


def signal_of(ended: Event) -> str:
    """The name of the signal that ended the job, also of one that its code tells; "" for none.

    A shell and a handler of the program's own end with 128 + the number of the signal.
    """
    if ended.get("signal"):
        return str(ended["signal"]).partition(" ")[0]
    number = int(ended.get("code") or 0) - 128
    return Signals(number).name if number in set(Signals) else ""


def _step_place(step: int | None) -> Place | None:
    return None if step is None else Place(step=step)

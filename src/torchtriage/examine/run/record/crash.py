"""One uncaught error of a job, and the signal that ended it."""

from __future__ import annotations

from dataclasses import dataclass
from signal import Signals

from torchtriage.examine.run.job.events import Ended

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


def signal_of(ended: Ended) -> str:
    """The name of the signal that ended the job, also of one that its code tells; "" for none.

    A shell and a handler of the program's own end with 128 + the number of the signal.
    """
    if ended.signal:
        return ended.signal.partition(" ")[0]
    number = (ended.code or 0) - 128
    return Signals(number).name if number in set(Signals) else ""

"""How a job ended badly: the exception, signal or exit code, and where."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from torchtriage.core.evidence import Place

BROKEN = 3
"""Lines at most that a broken sentence of a message goes on for in its summary."""
_PASSED = re.compile(
    r"Caught (?P<type>\w{1,80}) in (?P<where>(?:DataLoader worker process|replica|pin memory thread)[^.]{0,60})\.?"
)
"""What torch.utils.data and DataParallel put before the traceback of an error that they pass on (ExceptionWrapper)."""


class End(Struct, frozen=True):
    """The end that the others followed from.

    kind: "exception" an uncaught error, "signal" one that ended the process, "exit" a code that the program chose.
    type: the exception's class or the signal's name, "" for an exit. message: its words, possibly several lines; of an
    exit, what it printed, where that is known. says: the message in plain words, where its figures were worked out.
    operands: what met on the raising line, by shape, dtype and device. code: as a shell tells it, None where nobody
    does. place: the user's own innermost line. faults: those that a message of this kind names, the likeliest first.
    found_at: where the message stands, which for a log is a line of the log. is_trained: whether training had begun,
    None where that is not known. cause: the finding that tells why, by slug. do: the next step, where one is known.
    followed: how many messages of others only follow from this end.
    """

    kind: Literal["exception", "signal", "exit"]
    type: str = ""
    message: str = ""
    place: Place | None = None
    code: int | None = None
    says: str = ""
    operands: str = ""
    faults: tuple[str, ...] = ()
    found_at: Place | None = None
    is_trained: bool | None = None
    cause: str = ""
    do: str = ""
    followed: int = 0

    @property
    def summary(self) -> str:
        """The first words of the message that say something, in one line.

        An error that a DataLoader worker or a replica raised is quoted after its traceback: that is what it says. A
        heading ("Error(s) in loading state_dict for Net:") goes on in the line after it, and so does a sentence that is
        broken over lines, as multiprocessing's is.
        """
        lines = [line.strip() for line in self.message.splitlines() if line.strip()]
        if not lines:
            return ""
        if passed := self._passed:
            says = lines[-1].removeprefix(passed["type"]).removeprefix(":").strip()
            return f"{says} (in {passed['where']})" if says else f"in {passed['where']}"
        first, *rest = lines
        if first.endswith(":"):
            return " ".join([first, *rest[:1]])
        for line in rest[:BROKEN]:
            if not (first[-1].isalpha() or first[-1] == ",") or not line[0].islower():
                break
            first = f"{first} {line}"
        return first

    @property
    def headline(self) -> str:
        """The type with the summary of the message."""
        passed = self._passed
        return ": ".join(filter(None, (passed["type"] if passed else self.type, self.summary)))

    @property
    def _passed(self) -> re.Match[str] | None:
        """Type and place of the error that a worker or replica passed on; None of any other.

        An error that cannot be made from one text alone, such as UnicodeDecodeError, comes over as a RuntimeError.
        """
        head, _, rest = self.message.strip().partition("\n")
        found = _PASSED.fullmatch(head.strip())
        last = rest.strip().rpartition("\n")[2].strip()
        return found if found and last.startswith(found["type"]) else None

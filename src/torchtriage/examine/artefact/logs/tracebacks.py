"""Tracebacks put together again, line by line, also where several ranks write at once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from torchtriage.examine.artefact.logs.said import Frame

MOST = 60
"""Lines of a message that are kept; DistributedDataParallel's and load_state_dict's are the long ones."""
LONGEST = 2000
"""Characters of a line of a message that are kept."""
FOREIGN = 30
"""Lines of others between two of a traceback, at most."""
START = re.compile(r"(?:Original |Exception Group )?Traceback \(most recent call last\):?\s*$")
ERROR = re.compile(
    r"(?P<type>(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning|Timeout|Iteration|Failure|Expired|ExceptionGroup)|Exception(?:Group)?))"
    r"(?:: (?P<says>.*)|:?\s*$)"
)
_TYPE = re.compile(r"(?:[a-z_]\w*\.)+[A-Z]\w*(?:: |:?\s*$)")
_FRAME = re.compile(r'\s{1,8}File "(?P<path>[^"]{1,1000})", line (?P<line>\d{1,9})(?:, in (?P<function>.{1,200}))?')
_INSTALLED = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python\d|^<|[/\\]bin[/\\]\w+$|"
    # our own hooks, also from a checkout, in logs of a job that was run under them
    r"[/\\]torchtriage[/\\](?:examine[/\\]run[/\\](?:job|attach)|specialists[/\\]\w+[/\\]probes)[/\\]"
)
_NEXT = re.compile(
    r"[EWIF]\d{4} \d\d:|\d{4}-\d\d-\d\d|\[?\d\d:\d\d:\d\d|\[[EWIF]\d{4} |(?:srun|slurmstepd): |Exception ignored|=====|"
    r"During handling of the above|The above exception was|Traceback \(most|\[W|\w+:\d+:\d+ \[\d+\] NCCL"
)
GROUP = re.compile(r"(?:Base)?ExceptionGroup: ")
_MARGIN = re.compile(r" {2,80}(?:\| ?|\+ (?=Exception Group)|\+-[+-]{3,80}(?: \d{1,4} )?-{3,80}\s*$)")
"""What Python writes before the lines of a group of errors, and between its parts."""
_HANDLING = re.compile(r"During handling of the above exception|The above exception was the direct cause")


@dataclass
class Open:
    """A traceback, or a message, that may go on. line: where it begins, at: where its message does.

    is_noise: what Python says of an error that it ignored.
    """

    line: int
    frames: list[tuple[str, int, str]] = field(default_factory=list)
    codes: dict[int, str] = field(default_factory=dict)
    message: list[str] = field(default_factory=list)
    at: int = 0
    foreign: int = 0
    is_noise: bool = False

    def takes(self, text: str, line: int) -> bool:
        """Whether TEXT, the next line of the same rank, belongs to it; it is then kept."""
        return self._message(text) if self.message else self._stack(text, line)

    def _stack(self, text: str, line: int) -> bool:
        if found := _FRAME.match(text):
            self.frames.append((found["path"], int(found["line"]), found["function"] or "<module>"))
            return True
        if text[:1] in (" ", "\t", "") or text.startswith("["):
            if text.strip() and self.frames:
                self.codes.setdefault(len(self.frames) - 1, text.strip()[:200])
            return True
        if ERROR.match(text) or _TYPE.match(text):
            self.message, self.at = [text[:LONGEST]], line
            return True
        self.foreign += 1  # a line of another rank, without a mark
        return self.foreign <= FOREIGN and not START.search(text)

    def _message(self, text: str) -> bool:
        if len(self.message) >= MOST or _NEXT.match(text) or (not text.strip() and not self._is_nested):
            return False
        if ERROR.match(text) and not self._is_nested:
            return False
        if found := _FRAME.match(text):  # of an original traceback that came over from a worker
            self.frames.append((found["path"], int(found["line"]), found["function"] or "<module>"))
        self.message.append(text[:LONGEST])
        return True

    @property
    def _is_nested(self) -> bool:
        """Whether the message holds a traceback whose own message is still to come."""
        starts = [number for number, text in enumerate(self.message) if START.search(text)]
        return bool(starts) and not any(ERROR.match(text) for text in self.message[starts[-1] :])

    @property
    def frame(self) -> Frame | None:
        """The innermost line of the user's own code."""
        for number in range(len(self.frames) - 1, -1, -1):
            path, line, function = self.frames[number]
            if not _INSTALLED.search(path):
                return Frame(path, line, function, self.codes.get(number, ""))
        return None

    @property
    def is_broken(self) -> bool:
        """A traceback whose error never came."""
        return not self.message


def of_group(text: str) -> str:
    """TEXT, a line of a group of errors, without its margin."""
    found = _MARGIN.match(text)
    return text[found.end() :] if found else text


def links(text: str) -> str:
    """How the next traceback hangs on the last: "handling", "cause", or not at all."""
    found = _HANDLING.match(text)
    return "" if not found else "handling" if found[0].startswith("During") else "cause"

"""How a launcher lists the ends of its processes: torchelastic's summary, and the lines before it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from torchtriage.examine.artefact.logs.said import Exit

_BEGINS = re.compile(r"(?P<root>Root Cause \(first observed failure\))|(?P<others>Failures:|Other Failures)")
_ENDS = re.compile(r"={10,}")
_RANK = re.compile(r"\s{0,8}rank\s*: (\d{1,6})")
_HOST = re.compile(r"\s{0,8}host\s*: (\S{1,200})")
_CODE = re.compile(r"\s{0,8}exitcode\s*: (-?\d{1,6})(?: \(pid: (\d{1,9})\))?")
_FAILED = re.compile(r"failed \(exitcode: (-?\d{1,6})\) local_rank: (\d{1,6}) \(pid: (\d{1,9})\)")
_LONGEST = 100_000  # lines: of a job of ten thousand ranks


@dataclass
class Summary:
    """The summary while it is read. exits: as far as they were listed; local: what one launcher said beside it."""

    path: str
    exits: list[Exit] = field(default_factory=list)
    local: list[Exit] = field(default_factory=list)
    is_open: bool = False
    _is_root: bool = False
    _rank: int | None = None
    _host: str = ""
    _lines: int = 0

    def takes(self, text: str, line: int) -> bool:
        """Whether TEXT belongs to the summary."""
        if found := _BEGINS.match(text):
            self.is_open, self._is_root, self._lines = True, bool(found["root"]), 0
            return True
        if "(exitcode: " in text and (found := _FAILED.search(text)):
            code, rank, pid = (int(group) for group in found.groups())
            self.local.append(Exit(self.path, line, rank, code, pid, is_root=not self.local))
            return True
        if not self.is_open:
            return False
        self._lines += 1
        self.is_open = self._lines < _LONGEST and not _ENDS.match(text)
        return self._row(text, line)

    def _row(self, text: str, line: int) -> bool:
        if found := _RANK.match(text):
            self._rank = int(found[1])
        elif found := _HOST.match(text):
            self._host = found[1]
        elif (found := _CODE.match(text)) and self._rank is not None:
            pid = int(found[2]) if found[2] else None
            self.exits.append(Exit(self.path, line, self._rank, int(found[1]), pid, self._is_root, self._host))
            self._rank = None
        return text[:1] in (" ", "[", "-", "=")

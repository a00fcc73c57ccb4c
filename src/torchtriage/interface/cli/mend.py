"""What `check --fix` writes, and `check --diff` shows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING

from torchtriage.core.errors import TriageError
from torchtriage.interface.cli import terminal
from torchtriage.report.text import count, line
from torchtriage.triage import mend as mended

if TYPE_CHECKING:
    from torchtriage.core.case import Case
    from torchtriage.core.finding import Finding
    from torchtriage.examine.source.edits import Mended


@dataclass(frozen=True)
class Changes:
    """Files with the edits of their findings."""

    files: tuple[Mended, ...]

    def write(self) -> str:
        """Writes what has changed, each file at once and with its rights; says what was done."""
        for each in self.files:
            if each.after != each.before:
                _write(Path(each.path), each.after)
        return self.summary("mended")

    def summary(self, verb: str) -> str:
        done, files = sum(len(each.done) for each in self.files), sum(each.after != each.before for each in self.files)
        text = f"{count(done, 'finding')} {verb} in {count(files, 'file')}"
        left = [f"{line(each.path)}: {finding.fault.slug}" for each in self.files for finding in each.refused]
        kept = f"; not {verb}, since the edit would not have helped: {', '.join(left)}" if left else ""
        return f"{text}{kept}."


def mend(case: Case, wanted: Callable[[Finding], bool], stdin: bytes, unsafe: bool) -> Changes:
    """The edits of CASE's findings, put into their files; nothing is written."""

    def contents(path: str) -> bytes:
        return stdin if path == "-" else Path(path).read_bytes()

    return Changes(tuple(mended(case, wanted, contents, unsafe)))


def differences(changes: Changes) -> int:
    """Prints what would change; 1 when anything would."""
    text = "".join(piece for each in changes.files for piece in _difference(each))
    terminal.result(text, "diff")
    terminal.say(changes.summary("to be mended"))
    return int(bool(text))


def _difference(each: Mended) -> Iterator[str]:
    before, after = (data.decode("utf-8", "replace").splitlines(keepends=True) for data in (each.before, each.after))
    for row in unified_diff(before, after, f"a/{each.path}", f"b/{each.path}"):
        yield row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n"


def _write(path: Path, data: bytes) -> None:
    """The old file or the whole new one, where a link points to."""
    real = Path(os.path.realpath(path))
    try:
        number, beside = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}.")
        with os.fdopen(number, "wb") as file:
            file.write(data)
        Path(beside).chmod(real.stat().st_mode)
        Path(beside).replace(real)
    except OSError as error:
        raise TriageError(f"cannot be written: {error.strerror}", str(path), "Give permission to write it.") from error

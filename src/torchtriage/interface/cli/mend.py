"""What `check --fix` writes, and `check --diff` shows."""

from __future__ import annotations

import os
import re
import shutil
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

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True)
class Changes:
    """Files with the edits of their findings."""

    files: tuple[Mended, ...]

    def write(self) -> str:
        """Writes what has changed, each file at once and with its rights; says what was done.

        Raises TriageError for a file that somebody else has changed meanwhile: it stays as it is.
        """
        for each in self.files:
            if each.after != each.before:
                _write(Path(each.path), each.before, each.after)
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


def differences(changes: Changes) -> bool:
    """Prints what would change; whether anything would."""
    text = difference(changes)
    terminal.result(text, "diff")
    terminal.say(changes.summary("to be mended"))
    return bool(text)


def difference(changes: Changes) -> str:
    """What would change, as a patch."""
    return "".join(piece for each in changes.files for piece in _difference(each))


def _difference(each: Mended) -> Iterator[str]:
    # Only \n ends a line of a patch, whatever else Python takes for a line end.
    before, after = (_LINE.findall(data.decode("utf-8", "replace")) for data in (each.before, each.after))
    for row in unified_diff(before, after, f"a/{each.path}", f"b/{each.path}"):
        yield row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n"


def _write(path: Path, before: bytes, after: bytes) -> None:
    """The old file or the whole new one, where a link points to. A file with several names keeps all of them."""
    real = Path(os.path.realpath(path))
    try:
        about = real.stat()
        if not os.access(real, os.W_OK) or not about.st_mode & 0o222:
            raise TriageError("may not be written", str(path), "Give permission to write it.")
        if real.read_bytes() != before:
            raise TriageError("was changed while it was examined: it stays as it is", str(path), "Run --fix again.")
        if about.st_nlink > 1:
            real.write_bytes(after)
            return
        number, beside = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}.")
        with os.fdopen(number, "wb") as file:
            file.write(after)
        shutil.copystat(real, beside)
        if hasattr(os, "chown"):
            os.chown(beside, about.st_uid, about.st_gid)
        Path(beside).replace(real)
    except OSError as error:
        raise TriageError(f"cannot be written: {error.strerror}", str(path), "Give permission to write it.") from error

"""What stays of a run: its folder, with the case and the report in it; and the case, read back."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from torchtriage.core.case import Case
from torchtriage.core.errors import TriageError
from torchtriage.report.formats import render
from torchtriage.report.text import line


@contextmanager
def folder(
    out: Path | None,
    parent: Path = Path("torchtriage-runs"),
    name: str | None = None,
    ours: Callable[[Path], bool] = lambda _: False,
) -> Iterator[Path]:
    """OUT, else a new folder below PARENT, which is taken away when no job could be started.

    It is called NAME, else by the time; one that is there already and is OURS is taken as it is.
    """
    made = out or _new(parent, name or time.strftime("%Y%m%d-%H%M%S"), ours)
    try:
        yield made
    except TriageError:
        if out is None:
            with suppress(OSError):  # not empty, so something started
                made.rmdir()
        raise


def _new(parent: Path, name: str, ours: Callable[[Path], bool]) -> Path:
    number = 1
    try:
        parent.mkdir(parents=True, exist_ok=True)
        while True:
            made = parent / (name if number == 1 else f"{name}-{number}")
            with suppress(FileExistsError):
                made.mkdir()
                return made
            if made.is_dir() and ours(made):
                return made
            number += 1
    except OSError as error:
        raise TriageError(
            f"no folder can be made: {error.strerror}", str(parent), "Name a folder that can be written with --out."
        ) from error


def made(folder: Path) -> Path:
    """FOLDER, which is there from now on."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TriageError(
            f"no folder can be made: {error.strerror}", str(folder), "Name a folder that can be written with --out."
        ) from error
    return folder


def kept(path: Path) -> Case:
    """The case in PATH, a case.json or the folder that holds one; raises TriageError when there is none."""
    return Case.load(path / "case.json" if path.is_dir() else path)


def keep(case: Case, folder: Path) -> str:
    """Writes case.json and report.html to FOLDER; tells where they are, or what could not be written."""
    told = (
        _written(folder / "case.json", lambda: render(case, "json").encode()),
        _written(folder / "report.html", lambda: render(case, "html").encode("utf-8", "replace")),
    )
    return "\n".join(told)


def _written(path: Path, content: Callable[[], bytes]) -> str:
    """A reader sees no file, the old one or the whole new one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_bytes(content())
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        return f"not written: {line(str(path))}: {error.strerror}. Name a folder that can be written and has room."
    return f"written: {line(str(path))}"

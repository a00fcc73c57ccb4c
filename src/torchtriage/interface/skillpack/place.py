"""Puts the pack into a folder of skills and takes it out again, and touches no file of anybody else's.

A list of what was written, with the hash of each file, lies beside the skills. A file whose content is neither that
nor the new one has been changed by somebody: it is written over only when that is asked for. No link is followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from hashlib import sha256
from pathlib import Path, PurePosixPath
from tempfile import NamedTemporaryFile

import msgspec
from msgspec import Struct

from torchtriage.core.errors import TriageError

LIST = ".torchtriage-skills.json"


class Act(Enum):
    """What is to be done with a file. changed: somebody has edited it. foreign: it is to go, and is not ours."""

    NEW = "new"
    SAME = "same"
    UPDATE = "update"
    CHANGED = "changed"
    REMOVE = "remove"
    FOREIGN = "foreign"


class Listed(Struct):
    """What an installation has written: hashes by path."""

    files: dict[str, str]


class Step(Struct, frozen=True):
    """One file of a plan: its path below the folder, what is to be done, the text before and after."""

    path: str
    act: Act
    before: str = ""
    after: str = ""


def plan(folder: Path, files: Mapping[str, str], base: Path) -> list[Step]:
    """What has to be done so that FOLDER, below BASE, holds FILES, and nothing else that was once installed there.

    Raises TriageError where a link lies on the way, or the list of an installation cannot be read.
    """
    listed = _listed(folder, base)
    steps = [_step(folder, base, path, text, listed.get(path)) for path, text in files.items()]
    gone = (path for path in listed if path not in files)
    return steps + [step for path in gone if (step := _leaving(folder, base, path, listed[path])) is not None]


def carry_out(folder: Path, steps: list[Step], base: Path) -> None:
    """Does what STEPS say, over changed files too; a file that is foreign stays.

    The list comes first: whatever ends this in the middle, what was written is known as ours.
    """
    before = _listed(folder, base)
    kept = {step.path: _hash(step.after) for step in steps if step.act not in (Act.REMOVE, Act.FOREIGN)}
    if kept:
        _list(folder, base, kept | before)
    for step in steps:
        target = _inside(folder, base, step.path)
        if step.act is Act.REMOVE:
            with _told(target):
                target.unlink(missing_ok=True)
                _tidy(target.parent, folder)
        elif step.act in (Act.NEW, Act.UPDATE, Act.CHANGED):
            _write(target, step.after)
    if kept:
        _list(folder, base, kept)
        return
    target = _inside(folder, base, LIST)
    with _told(target):
        target.unlink(missing_ok=True)
        _tidy(folder, base)


def _list(folder: Path, base: Path, files: dict[str, str]) -> None:
    text = msgspec.json.format(msgspec.json.encode(Listed(files))).decode()
    _write(_inside(folder, base, LIST), f"{text}\n")


def _step(folder: Path, base: Path, path: str, text: str, known: str | None) -> Step:
    before = _content(_inside(folder, base, path))
    if before is None:
        return Step(path, Act.NEW, after=text)
    if before == text:
        return Step(path, Act.SAME, before, text)
    return Step(path, Act.UPDATE if _hash(before) == known else Act.CHANGED, before, text)


def _leaving(folder: Path, base: Path, path: str, known: str) -> Step | None:
    before = _content(_inside(folder, base, path))
    if before is None:
        return None
    return Step(path, Act.REMOVE if _hash(before) == known else Act.FOREIGN, before)


def _listed(folder: Path, base: Path) -> dict[str, str]:
    path = _inside(folder, base, LIST)
    content = _content(path)
    if content is None:
        return {}
    try:
        return msgspec.json.decode(content.encode("utf-8", "surrogateescape"), type=Listed).files
    except (msgspec.DecodeError, RecursionError) as error:
        do = "Delete it, and install with --force: what lies there is then taken as changed."
        raise TriageError(f"the list of installed skills is broken: {error}", str(path), do) from error


def _inside(folder: Path, base: Path, path: str) -> Path:
    """PATH below FOLDER; raises TriageError where it leads out, or where it or a folder from BASE on is a link."""
    parts = PurePosixPath(path).parts
    if not parts or PurePosixPath(path).is_absolute() or ".." in parts or "\0" in path:
        raise TriageError("a path leads out of the folder of skills", path, "Delete the list that names it.")
    target = folder.joinpath(*parts)
    for each in (target, *target.parents):
        if each == base:
            break
        with _told(each):
            linked = each.is_symlink()
        if linked:
            do = "Links are not followed: name the real folder, or put a real one in its place."
            raise TriageError("a link lies where skills are to be", str(each), do)
    return target


def _content(path: Path) -> str | None:
    """The text of a file; None where there is none. Raises TriageError for what is no file: a pipe would never end."""
    with _told(path):
        try:
            kind = path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not stat.S_ISREG(kind):
            raise TriageError("it is no file", str(path), "Put a file that can be read there, or remove it.")
        return path.read_bytes().decode("utf-8", "surrogateescape")


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    with _told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as beside:
            try:
                beside.write(text.encode())
                beside.flush()
                Path(beside.name).chmod(0o644)
                os.replace(beside.name, path)  # noqa: PTH105 - it takes a link's place, and never goes through it
            except BaseException:
                Path(beside.name).unlink(missing_ok=True)
                raise


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """What the system refuses for PATH, as an error that says so."""
    try:
        yield
    except OSError as error:
        do = "Give permission and room there, or name another folder."
        raise TriageError(f"cannot be read or written: {error.strerror}", str(path), do) from error


def _tidy(folder: Path, top: Path) -> None:
    """Takes away folders that have become empty, up to TOP."""
    while folder != top and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()

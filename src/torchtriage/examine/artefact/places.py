"""The files below what was named: folders, archives and URLs taken apart, links in circles and pipes passed over."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from torchtriage.core.errors import TriageError
from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.artefact.layouts import beside, layout, unfinished
from torchtriage.examine.artefact.layouts import within as is_within
from torchtriage.examine.artefact.opened import FROM, INSIDE, RATIO, Unreadable, archive, filesystem, is_url
from torchtriage.examine.confinement import DO, WHY, leads_out
from torchtriage.examine.confinement import folders as folders_that_hold

ENTRIES = 100_000
"""Files that are looked for in one folder or archive."""
DEEP = 200
"""Folders within each other that are gone into: a path of more is a circle of mounts, or longer than a path may be."""
_NAME = "Name the files themselves, or make them readable."


class Place(Struct, frozen=True):
    """A file. folder: the folder, archive or URL in which it was found; "" for what was named itself.

    whole: it is a folder that is read as one: "run", that of a `torchtriage run`, or "checkpoint".
    """

    path: str
    folder: str = ""
    whole: str = ""


def within(paths: Sequence[str]) -> tuple[tuple[Place, ...], tuple[Inconclusive, ...]]:
    """The files at PATHS and below, in the order of PATHS and, below one of them, of their names.

    Raises TriageError for a path that is not there.
    """
    places: dict[Place, None] = {}
    unseen: list[Inconclusive] = []
    for path in paths:
        for each in _remote(path) if is_url(path) else _local(path):
            if isinstance(each, Inconclusive):
                unseen.append(each)
            else:
                places[each] = None
    return tuple(places), tuple(unseen)


def _local(path: str) -> Iterator[Place | Inconclusive]:
    if INSIDE in path and not os.path.lexists(path):
        yield Place(path)
    elif os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises for names that are too long
        yield from _folder(path)
    else:
        yield from _file(path, "")


def _file(path: str, folder: str) -> Iterator[Place | Inconclusive]:
    if leads_out(path):
        yield Inconclusive("read", f"{path}: {WHY}", DO)
        return
    try:
        found = os.stat(path)  # noqa: PTH116 - of "" pathlib makes the folder in which we are
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else "") or str(error)
        if not folder:
            raise TriageError(
                f"cannot be read: {why}", path, "Name a file or folder that a job or a `torchtriage run` left."
            ) from error
        yield Inconclusive("read", f"{path}: cannot be read: {why}", _NAME)
        return
    if not stat.S_ISREG(found.st_mode):
        yield Inconclusive("read", f"{path}: devices, pipes and sockets are not opened", "Name a regular file.")
    elif _is_archive(path):
        yield from _archive(path)
    else:
        yield Place(path, folder)


def _folder(top: str) -> Iterator[Place | Inconclusive]:
    """Links to folders are not followed, so that none leads in a circle; links to files are."""
    unread: list[OSError] = []
    seen = 0
    for root, folders, names in os.walk(top, onerror=unread.append):
        if (_is_run(root, names) or layout(names, folders)) and (out := _leading_out(root)):
            folders.clear()
            yield Inconclusive(
                "read", f"{out}: {WHY}; the folder {root} is read as a whole, and so it was left out", DO
            )
            continue
        if root.count(os.sep) - top.count(os.sep) >= DEEP and folders:
            folders.clear()
            yield Inconclusive(
                "read", f"{top}: more than {DEEP} folders within each other; the rest was left out", _NAME
            )
        if _is_run(root, names):
            folders.clear()
            yield Place(root, "" if root == top else top, "run")
            continue
        if layout(names, folders):
            folders[:] = [name for name in folders if not is_within(name)]
            names = [name for name in names if beside(name)]  # noqa: PLW2901 - the others are the checkpoint
            yield Place(root, "" if root == top else top, "checkpoint")
        yield from _unfinished(root, folders)
        links = [name for name in folders if os.path.islink(os.path.join(root, name))]  # noqa: PTH114, PTH118 - never raises
        folders[:] = sorted(name for name in folders if name not in links and name != ".git")
        if links:
            yield Inconclusive("read", f"{Path(root, min(links))}: links to folders are not followed", _NAME)
        for name in sorted(name for name in names if name != ".lock"):
            seen += 1
            if seen > ENTRIES:
                yield Inconclusive("read", f"{top}: more than {ENTRIES:,} files; the rest was left out", _NAME)
                return
            yield from _file(os.path.join(root, name), top)  # noqa: PTH118 - the path as it was named, "./" and all
    for error in unread:
        yield Inconclusive("read", f"{error.filename}: cannot be read: {error.strerror}", _NAME)


def _unfinished(root: str, folders: list[str]) -> Iterator[Inconclusive]:
    """Takes out of FOLDERS the saves of TrainingState that broke off."""
    if begun := [name for name in folders if unfinished(name)]:
        folders[:] = [name for name in folders if name not in begun]
        why = f"{Path(root, min(begun))}: a save of TrainingState that did not come to its end; the others stand"
        yield Inconclusive("read", why, "Nothing: the next save takes it away.")


def _leading_out(root: str) -> Path | None:
    """The first link in ROOT, or below it, that leads out of what may be read."""
    if not folders_that_hold():
        return None
    entries = (Path(here, name) for here, folders, names in os.walk(root) for name in sorted((*folders, *names)))
    return next(filter(leads_out, entries), None)


def _is_run(root: str, names: Sequence[str]) -> bool:
    """A pipe by the name of a record is none: nobody may ever write into it."""
    records = (n for n in names if n == "processes.jsonl" or (n.startswith("rank") and n.endswith(".jsonl")))
    return any(os.path.isfile(os.path.join(root, name)) for name in records)  # noqa: PTH113, PTH118


def _is_archive(path: str) -> bool:
    """A zip file that is not torch's own: a checkpoint is one, too, and holds its data.pkl in a folder."""
    try:
        with Path(path).open("rb", buffering=0) as file:
            head = file.read(512)
    except OSError:
        return False
    named = int.from_bytes(head[26:28], "little")  # torch writes its data.pkl first
    if not head.startswith(b"PK\x03\x04") or head[30 : 30 + named].endswith(b"/data.pkl"):
        return False
    names = _members(path)
    return isinstance(names, str) or not any(name.endswith("data.pkl") for name in names)


def _archive(path: str) -> Iterator[Place | Inconclusive]:
    names = _members(path)
    if isinstance(names, str):
        yield Inconclusive("read", f"{path}: a zip file that cannot be read: {names}", "Copy it again, or unpack it.")
        return
    size = sum(names.values())
    if size > max(FROM, RATIO * Path(path).stat().st_size):
        why = f"{path}: a zip file that would unpack to {size:,} bytes, more than {RATIO} times its size"
        yield Inconclusive("read", why, "Unpack it yourself, if you know what it is.")
        return
    files = [name for name in sorted(names) if not name.endswith("/")]
    yield from (Place(f"{path}{INSIDE}{name}", path) for name in files[:ENTRIES])
    if len(files) > ENTRIES:
        yield Inconclusive("read", f"{path}: more than {ENTRIES:,} files; the rest was left out", "Unpack it.")


def _members(path: str) -> dict[str, int] | str:
    """The names in a zip file, and the bytes that each unpacks to; or why it cannot be read."""
    try:
        return {each.filename: each.file_size for each in archive(path).infolist()}
    except Exception as error:  # noqa: BLE001 - zipfile raises whatever its bytes lead to; it is told
        return f"{type(error).__name__}: {error}"[:300]


def _remote(url: str) -> Iterator[Place | Inconclusive]:
    """The files below a URL; its folders are listed by the file system itself."""
    try:
        system, inner = filesystem(url)
        told = system.info(inner)
        if told.get("type") != "directory":
            yield Place(url)
            return
        names = sorted(system.find(inner))
    except FileNotFoundError as error:
        raise TriageError("there is no such file or folder", url, "Name a URL that is there.") from error
    except Unreadable as error:
        raise TriageError(error.why, url, error.do) from error
    except Exception as error:
        what = f"cannot be listed: {type(error).__name__}: {error}"[:300]
        raise TriageError(what, url, "See that this machine may read it.") from error
    yield from (Place(str(system.unstrip_protocol(name)), url) for name in names[:ENTRIES])
    if len(names) > ENTRIES:
        yield Inconclusive("read", f"{url}: more than {ENTRIES:,} files; the rest was left out", _NAME)

"""Where the modules of a project lie: its folders and files, each looked for once in a check."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path

_UP = 6
_ROOTS = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg")
_PLACES = 50_000
"""Of files and folders that are looked for, during one check: a package of 200 files asks 700,000 times."""
_SOURCES = 500
"""Files of a project that are asked who starts a program."""


def is_module(path: Path) -> bool:
    """Whether PATH is a folder, or with .py behind it a file: what `import` may mean."""
    return _is_there(f"{path}.py") or _is_folder(str(path))


@lru_cache(maxsize=_PLACES)
def _is_there(path: str) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - Path.exists raises where a name is too long


@lru_cache(maxsize=_PLACES)
def _is_folder(path: str) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - as above


@lru_cache(maxsize=_PLACES)
def folders_of_project(folder: Path) -> tuple[Path, ...]:
    """FOLDER and those above it, up to the one that holds the whole project."""
    found = [folder.absolute()]
    while len(found) < _UP and not any(_is_there(os.path.join(found[-1], each)) for each in _ROOTS):  # noqa: PTH118
        if found[-1] == found[-1].parent:
            break
        found.append(found[-1].parent)
    return tuple(found)


def file_below(folder: Path, words: list[str]) -> tuple[Path, list[str]] | None:
    """The file in FOLDER in which the dotted WORDS begin, and the words that are left of them."""
    path, count = _file_below(str(folder), tuple(words))
    return (Path(path), words[count:]) if path else None


@lru_cache(maxsize=_PLACES)
def _file_below(folder: str, words: tuple[str, ...]) -> tuple[str, int]:
    """The file in FOLDER in which the dotted WORDS begin, and how many of them name it; "" where there is none."""
    named = 0
    for count, word in enumerate(words, start=1):
        inner = f"{folder}{os.sep}{word}"
        if not _is_there(f"{inner}{os.sep}__init__.py") and _is_there(f"{inner}.py"):
            return f"{inner}.py", count
        if not _is_folder(inner):
            break
        folder, named = inner, count
    package = f"{folder}{os.sep}__init__.py"
    return (package, named) if _is_there(package) else ("", 0)


def forget_places() -> None:
    """Files may have come and gone: before the next check they are looked for again."""
    for each in (_is_there, _is_folder, folders_of_project, _file_below):
        each.cache_clear()


def sources_of_project(path: Path) -> Iterator[Path]:
    """The files of the project that PATH is one of, up to a number of them; those of its folder, where no mark says how
    far the project reaches.
    """
    if not path.is_file():
        return
    top = folders_of_project(path.parent)[-1]
    is_marked = any(_is_there(f"{top}{os.sep}{each}") for each in _ROOTS)
    yield from islice(_sources(top if is_marked else path.parent.absolute()), _SOURCES)


def _sources(top: Path) -> Iterator[Path]:
    for folder, inner, names in os.walk(top):
        inner[:] = sorted(each for each in inner if not each.startswith(".") and each not in ("site-packages", "venv"))
        yield from (Path(folder, each) for each in sorted(names) if each.endswith(".py"))

"""Lines of the user's files, of all that are loaded, by what is written there: a number, or a pattern."""

from __future__ import annotations

import re
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from . import frames, source

if TYPE_CHECKING:
    from collections.abc import Iterator

_NUMBER = re.compile(r"(?<![\w.])(?=\.?\d)[\d_]*\.?[\d_]*(?:[eE][+-]?\d+)?")
_MAIN = getattr(sys.modules.get("__main__"), "__file__", None)  # which it forgets when the script has come to its end
_SCRIPT = {str(Path(_MAIN).resolve())} if _MAIN else set()
_CHARACTERS = 1_000_000  # of all files together: some 20 ms


def line_of(value: float, near: re.Pattern[str]) -> tuple[str, int]:
    """File and line that write VALUE with a point or an exponent, no other line does so; where several do, the one that
    NEAR is found in. ("", 0) where there is none, or the command line has that number, too.
    """
    if value in (0.0, 1.0) or any(_is(value, word.rpartition("=")[2]) for word in sys.argv[1:]):
        return "", 0
    found = [each for each in _lines() if _writes(value, each[2])]
    named = [each for each in found if near.search(each[2])]
    only = found if len(found) == 1 else named
    return only[0][:2] if len(only) == 1 else ("", 0)


def lines_with(pattern: re.Pattern[str], most: int) -> list[tuple[str, int]]:
    """Files and lines in which PATTERN is found; none where these are more than MOST."""
    found = [(path, number) for path, number, text in _lines() if pattern.search(text)]
    return found if len(found) <= most else []


def _lines() -> Iterator[tuple[str, int, str]]:
    """File, number and text of each line, without comments; nothing of a program that is too long to read."""
    left = _CHARACTERS
    for file in _files():
        path, lines = frames.path_of(file), source.lines_at(file)
        left -= sum(map(len, lines))
        if left < 0 or path is None:
            return
        yield from ((path, number, text.partition("#")[0]) for number, text in enumerate(lines, start=1))


def _files() -> list[str]:
    """Of the modules that are loaded, without those that are installed."""
    apart = (sysconfig.get_path("stdlib"), str(frames.OURS))
    modules = [getattr(module, "__dict__", {}) for module in list(sys.modules.values())]  # a lazy one stays as it is
    files = {str(each.get("__file__") or "") for each in modules if each.get("__name__") != "__main__"}
    plain = {each for each in files if "-packages" not in each and not each.startswith(apart)}
    near = {each for each in plain if Path(each).is_absolute()}  # some modules of torch's have no folder
    return sorted(each for each in near | _SCRIPT if frames.path_of(each) is not None)


def _writes(value: float, text: str) -> bool:
    return any(_is(value, each) and not each.isdigit() for each in _NUMBER.findall(text))


def _is(value: float, text: str) -> bool:
    try:
        return float(text.replace("_", "")) == value
    except ValueError:
        return False

"""Who keeps something alive: the variable, attribute or container by which the user knows it."""

from __future__ import annotations

import gc
import linecache
import re
import sys
from collections import OrderedDict, defaultdict, deque
from pathlib import Path
from time import perf_counter
from types import CellType, FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

GROWING = (list, dict, set, deque, OrderedDict, defaultdict)
_SHARE = 100  # a further look waits until all but this part of the time since the last one was the job's
_LOOKS = 10  # at most


class Looks:
    """Looks at every object of the process: two as they are needed, ten at most, and 1 % of the time after that."""

    def __init__(self) -> None:
        self.taken = 0
        self.next = 0.0

    def due(self) -> bool:
        return self.taken < _LOOKS and (self.taken < 2 or perf_counter() >= self.next)

    def take(self, look: Any) -> Any:
        began = perf_counter()
        self.taken += 1
        found = look()
        self.next = perf_counter() + _SHARE * (perf_counter() - began)
        return found


class Holder:
    """What keeps something alive: the name under which the user knows it.

    bounded: a container that drops its oldest entries by itself. dataset: an attribute of a Dataset.
    """

    def __init__(self, name: str, kind: str, *, bounded: bool = False, dataset: bool = False) -> None:
        self.name, self.kind, self.bounded, self.dataset = name, kind, bounded, dataset


def holder_of(tensor: Any) -> Holder | None:
    """The named container, at most three levels up, that holds TENSOR."""
    for each in gc.get_referrers(tensor):
        if isinstance(each, (*GROWING, tuple)) and not _is_namespace(each):
            found = known_as(each, type(each).__name__, 0, iter(range(12)))
            if found:
                return found
    return known_as(tensor, "tensor", 3, iter(range(12)))


def known_as(thing: Any, kind: str, depth: int, tries: Iterator[int]) -> Holder | None:
    """Under which variable, attribute or container of these THING is known, as far as TRIES at its referrers go."""
    from torch.utils.data import Dataset

    bounded = getattr(thing, "maxlen", None) is not None
    for space in namespaces():
        for variable, value in list(space.items()):
            if value is thing:
                return Holder(str(variable), kind, bounded=bounded)
    for each in gc.get_referrers(thing):
        if type(each).__module__.startswith(__name__.rpartition(".")[0]) or isinstance(each, (FrameType, CellType)):
            continue
        if next(tries, None) is None:
            break
        owner = instance_of(each)
        name = next((name for name, value in attributes(owner) if value is thing), None) if owner is not None else None
        if name is not None:
            return Holder(f"{type(owner).__name__}.{name}", kind, bounded=bounded, dataset=isinstance(owner, Dataset))
        if depth < 2 and isinstance(each, (*GROWING, tuple)) and owner is each:
            found = known_as(each, type(each).__name__, depth + 1, tries)
            if found:
                return found
    return None


def namespaces() -> list[dict[str, Any]]:
    """The local and global variables of the user's frames that are running, the nearest first."""
    spaces: list[dict[str, Any]] = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package != "torch" and not package.startswith(("_torchtriage", "torchtriage")):
            spaces += [frame.f_locals, frame.f_globals]
        frame = frame.f_back
    return spaces


def filled_at(name: str) -> tuple[str, int] | None:
    """The first line of the user's running files that puts something into the container of that name."""
    last = re.escape(re.split(r"[.\[]", name)[-1 if "[" not in name else 0])
    puts = r"\s*(\[[^\]]*\]\s*)?(\.(append|appendleft|extend|add|insert|update|setdefault)\(|\+=|(?<=\])=[^=])"
    pattern = re.compile(rf"\b{last}{puts}|\b{last}\s*=\s*{last}\s*\+")
    files = [space.get("__file__") for space in namespaces()]
    for file in dict.fromkeys(path for path in files if isinstance(path, str)):
        for number, text in enumerate(linecache.getlines(file), start=1):
            if pattern.search(text.partition("#")[0]):
                path = Path(file).absolute()
                return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path), number
    return None


def _is_namespace(thing: Any) -> bool:
    """A module's or an instance's own dict, or a frame's: not a container that the user filled."""
    return isinstance(thing, dict) and ("__name__" in thing or instance_of(thing) is not thing)


def instance_of(thing: Any) -> Any:
    """The object whose attributes THING holds, when it is an object's dict; a plain container gives itself back."""
    if type(thing) is dict:
        for each in gc.get_referrers(thing):
            if getattr(each, "__dict__", None) is thing:
                return each
    return thing


def attributes(thing: Any) -> list[tuple[str, Any]]:
    own = getattr(thing, "__dict__", None)
    return list(own.items()) if type(own) is dict else []

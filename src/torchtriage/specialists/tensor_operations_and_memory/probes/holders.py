"""Who keeps something alive: the variable, attribute or container by which the user knows it."""

from __future__ import annotations

import gc
import linecache
import re
import sys
from collections import OrderedDict, defaultdict, deque
from pathlib import Path
from time import perf_counter
from types import CellType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

GROWING = (list, dict, set, deque, OrderedDict, defaultdict)
_SHARE = 100  # a further look waits until all but this part of the time since the last one was the job's
_LOOKS = 10  # at most
_TRIES = 16  # objects that hold something, whose own names are asked for: each is a walk over all objects


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

    def __init__(self, name: str, *, bounded: bool = False, dataset: bool = False) -> None:
        self.name, self.bounded, self.dataset = name, bounded, dataset


def holder_of(tensor: Any) -> Holder | None:
    """The named container, at most three levels up, that holds TENSOR."""
    for each in gc.get_referrers(tensor):
        if isinstance(each, (*GROWING, tuple)) and not _is_namespace(each):
            found = known_as(each)
            if found:
                return found
    return known_as(tensor, levels=1)


def known_as(thing: Any, levels: int = 3) -> Holder | None:
    """Under which variable or attribute THING is known, or a container that holds it, so many levels up."""
    things, tries = [thing], iter(range(_TRIES))
    bounded = False
    for _ in range(levels):
        bounded = bounded or any(getattr(each, "maxlen", None) is not None for each in things)
        referrers = [each for each in gc.get_referrers(*things) if each is not things and not _of_ours(each)]
        found = _variable(things, bounded) or _attribute(things, referrers, tries, bounded)
        if found:
            return found
        containers = [each for each in referrers if isinstance(each, (*GROWING, tuple))]
        things = [each for each in containers if not _is_namespace(each)][:_TRIES]
        if not things:
            break
    return None


def _variable(things: list[Any], bounded: bool) -> Holder | None:
    """The variable of the user's running frames, the nearest first, that is one of THINGS."""
    for space in namespaces():
        for variable, value in list(space.items()):
            if any(value is each for each in things):
                return Holder(str(variable), bounded=bounded)
    return None


def _attribute(things: list[Any], referrers: list[Any], tries: Iterator[int], bounded: bool) -> Holder | None:
    """The attribute, or the variable of a function that is not running, that is one of THINGS."""
    from torch.utils.data import Dataset

    for each in referrers:
        if isinstance(each, FrameType):
            continue
        if next(tries, None) is None:
            break
        if isinstance(each, CellType):
            name = _enclosed(each)
            if name is not None:
                return Holder(name, bounded=bounded)
            continue
        owner = instance_of(each)
        known = attributes(owner)
        name = next((name for name, value in known if any(value is thing for thing in things)), None)
        if name is not None:
            return Holder(f"{type(owner).__name__}.{name}", bounded=bounded, dataset=isinstance(owner, Dataset))
    return None


def _of_ours(thing: Any) -> bool:
    return type(thing).__module__.startswith(__name__.rpartition(".")[0])


def _enclosed(cell: CellType) -> str | None:
    """FUNCTION.VARIABLE, of a function that keeps the variable of CELL while it does not run."""
    for closure in gc.get_referrers(cell):
        if type(closure) is tuple and all(isinstance(each, CellType) for each in closure):
            for function in gc.get_referrers(closure):
                if isinstance(function, FunctionType) and function.__closure__ is closure:
                    variable = function.__code__.co_freevars[[each is cell for each in closure].index(True)]
                    return f"{function.__name__}.{variable}"
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
    entry, adds = r"\s*\[[^\]]*\]", "append|appendleft|extend|add|insert|update|setdefault"
    puts = rf"(({entry})*\s*(\.({adds})\(|\+=)|({entry})+\s*=[^=])"
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

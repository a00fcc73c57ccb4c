"""Who keeps something alive: the variable, attribute or container by which the user knows it."""

from __future__ import annotations

import gc
import re
import sys
from collections import OrderedDict, defaultdict, deque
from time import perf_counter
from types import CellType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

    from torchtriage.examine.run.job.job import Job

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

    bounded: a container that drops its oldest entries by itself. owner: the class whose attribute it is.
    codes: the functions that may fill it. key: of the entry that is meant. last: the variable or attribute itself.
    """

    def __init__(self, name: str, codes: list[CodeType], *, owner: type | None = None, bounded: bool = False) -> None:
        self.name, self.codes, self.owner, self.bounded = name, codes, owner, bounded
        self.key: Any = None
        self.last = re.split(r"[.\[]", name)[-1 if "[" not in name else 0]
        self.of_object = owner is not None

    @property
    def dataset(self) -> bool:
        """Whether it is an attribute of a Dataset."""
        from torch.utils.data import Dataset

        return self.owner is not None and issubclass(self.owner, Dataset)

    @property
    def is_on_ctx(self) -> bool:
        """Whether it is an attribute of the ctx of an autograd function."""
        from torch.autograd.function import FunctionCtx

        return self.owner is not None and issubclass(self.owner, FunctionCtx)

    def called(self, variable: str) -> Holder:
        """The same, as a function knows it that is handed it."""
        holder = Holder(variable, [])
        holder.key = self.key
        return holder


def holder_of(job: Job, tensor: Any) -> Holder | None:
    """The named container, at most three levels up, that holds TENSOR."""
    for each in gc.get_referrers(tensor):
        if isinstance(each, (*GROWING, tuple)) and not _is_namespace(each):
            found = known_as(job, each, key=_key(each, [tensor]))
            if found:
                return found
    return known_as(job, tensor, levels=1)


def known_as(job: Job, thing: Any, levels: int = 3, key: Any = None) -> Holder | None:
    """Under which variable or attribute THING is known, or a container that holds it, so many levels up."""
    things, tries = [thing], iter(range(_TRIES))
    bounded = False
    for _ in range(levels):
        bounded = bounded or any(getattr(each, "maxlen", None) is not None for each in things)
        referrers = [each for each in gc.get_referrers(*things) if each is not things and not _of_ours(each)]
        found = _variable(things) or _attribute(job, things, referrers, tries)
        if found:
            found.bounded, found.key = bounded, key
            return found
        containers = [each for each in referrers if isinstance(each, (*GROWING, tuple))]
        below, things = things, [each for each in containers if not _is_namespace(each)][:_TRIES]
        if not things:
            break
        key = next((found for each in things if (found := _key(each, below)) is not None), key)
    return None


def _key(container: Any, things: list[Any]) -> Any:
    """The key of a dict under which it has one of THINGS."""
    known = container.items() if isinstance(container, dict) else ()
    return next((key for key, value in known if any(value is each for each in things)), None)


def _variable(things: list[Any]) -> Holder | None:
    """The variable of the user's running frames, the nearest first, that is one of THINGS."""
    for space, code in namespaces():
        for variable, value in list(space.items()):
            if any(value is each for each in things):
                return Holder(str(variable), [code])
    return None


def _attribute(job: Job, things: list[Any], referrers: list[Any], tries: Iterator[int]) -> Holder | None:
    """The attribute, or the variable of a function that is not running, that is one of THINGS."""
    for each in referrers:
        if isinstance(each, FrameType):
            continue
        if next(tries, None) is None:
            break
        if isinstance(each, CellType):
            found = _enclosed(each)
            if found is not None:
                return found
            continue
        owner = instance_of(each)
        known = attributes(owner)
        name = next((name for name, value in known if any(value is thing for thing in things)), None)
        if name is not None:
            kind = type(owner)
            around = _around(job, owner)
            if around is not None:
                return around
            codes = [*job.written.codes(kind), *(code for _, code in namespaces())]
            return Holder(f"{kind.__name__}.{name}", list(dict.fromkeys(codes)), owner=kind)
    return None


def _around(job: Job, owner: Any) -> Holder | None:
    """Who holds OWNER, where that is one record of several in a list or its like, and no module."""
    import torch

    if isinstance(owner, torch.nn.Module):
        return None
    lists = [each for each in gc.get_referrers(owner) if isinstance(each, (list, deque)) and len(each) > 1]
    return next((found for each in lists if (found := known_as(job, each, levels=2)) is not None), None)


def _of_ours(thing: Any) -> bool:
    return type(thing).__module__.startswith(__name__.rpartition(".")[0])


def _enclosed(cell: CellType) -> Holder | None:
    """FUNCTION.VARIABLE, of a function that keeps the variable of CELL while it does not run."""
    for closure in gc.get_referrers(cell):
        if type(closure) is tuple and all(isinstance(each, CellType) for each in closure):
            for function in gc.get_referrers(closure):
                if isinstance(function, FunctionType) and function.__closure__ is closure:
                    variable = function.__code__.co_freevars[[each is cell for each in closure].index(True)]
                    return Holder(f"{function.__name__}.{variable}", [function.__code__])
    return None


def namespaces() -> list[tuple[dict[str, Any], CodeType]]:
    """The local and global variables of the user's frames that are running, the nearest first, with their code."""
    spaces: list[tuple[dict[str, Any], CodeType]] = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package != "torch" and not package.startswith(("_torchtriage", "torchtriage")):
            spaces += [(frame.f_locals, frame.f_code), (frame.f_globals, frame.f_code)]
        frame = frame.f_back
    return spaces


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

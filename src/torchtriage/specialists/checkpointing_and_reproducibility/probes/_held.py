"""Random generators that a dataset, its transforms and the functions of both hold."""

from __future__ import annotations

import random
import sys
import zlib
from typing import TYPE_CHECKING, Any

from .events import Drawn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

_OBJECTS = 200  # that are looked at below a dataset
_PARTS = 32  # of a container
_RESEEDS = frozenset(
    {"seed", "manual_seed", "set_state", "setstate", "__setstate__", "bit_generator", "default_rng", "Generator"}
    | {"RandomState", "SeedSequence", "Random", "spawn", "jumped", "advance", "deepcopy"}
)


class Held:
    """A generator: attribute NAME of OWNER."""

    def __init__(self, owner: Any, name: str, generator: Any) -> None:
        self.owner, self.name, self.generator = owner, name, generator

    def event(self, written: Any) -> Drawn:
        """What is told of it, before any worker has begun."""
        path, line = written.assigned(type(self.owner), self.name)
        kind = type(self.generator)
        return Drawn(
            container=f"{type(self.owner).__name__}.{self.name}", generator=f"{kind.__module__}.{kind.__name__}",
            path=path, line=line, alike=0, of=0, again=0, learned=0,
        )  # fmt: skip


def generators(dataset: Any, written: Any) -> list[Held]:
    """Those that the dataset and what it holds own, outermost first; nothing of the user's is run."""
    found, seen, waiting = [], {id(dataset)}, [dataset]
    kinds = _kinds()
    while waiting and len(seen) < _OBJECTS:
        owner = waiting.pop(0)
        for name, value in _parts(owner):
            if id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, kinds):
                found.append(Held(owner, name, value))
            elif isinstance(value, (list, tuple, dict)) or _is_of_interest(value, written):
                waiting.append(value)
    return [each for each in found if not isinstance(each.owner, (list, tuple, dict))]


def state_of(generator: Any) -> int:
    """A mark of its state, equal in processes where that is equal."""
    kind = type(generator)
    if isinstance(generator, random.Random):
        state: Any = generator.getstate()
    elif kind.__module__.startswith("numpy"):
        state = generator.bit_generator.state if hasattr(generator, "bit_generator") else generator.get_state()
    else:
        state = bytes(generator.get_state().tolist())
    return zlib.crc32(repr(_plain(state)).encode())


def reseeds(kind: type, written: Any) -> bool:
    """Whether a method of the class, other than its constructor, may set generators or their states."""
    return any(
        _RESEEDS & _names(code)
        for code in written.codes(kind)
        if code.co_name != "__init__" and "epoch" not in code.co_name
    )


def _kinds() -> tuple[type, ...]:
    import torch

    numpy = sys.modules.get("numpy")
    own = (numpy.random.Generator, numpy.random.RandomState) if numpy is not None else ()
    return (random.Random, torch.Generator, *own)


def _parts(owner: Any) -> list[tuple[str, Any]]:
    if isinstance(owner, dict):
        return [(str(name), each) for name, each in list(owner.items())[:_PARTS]]
    if isinstance(owner, (list, tuple)):
        return [(str(number), each) for number, each in enumerate(owner[:_PARTS])]
    own = getattr(owner, "__dict__", None)
    return list(own.items()) if type(own) is dict else []


def _is_of_interest(value: Any, written: Any) -> bool:
    """An object of the user's own class, or of torch's classes of datasets and transforms."""
    kind = type(value)
    if kind.__module__.startswith(("torch.utils.data", "torchvision.transforms", "torchvision.datasets")):
        return True
    return hasattr(value, "__dict__") and not isinstance(value, type) and next(written.codes(kind), None) is not None


def _names(code: CodeType) -> set[str]:
    """The names that CODE, and the functions within it, mention."""
    return set(code.co_names).union(*(_names(each) for each in _inner(code)))


def _inner(code: CodeType) -> Iterator[CodeType]:
    return (each for each in code.co_consts if hasattr(each, "co_names"))


def _plain(state: Any) -> Any:
    """The state with its arrays as lists, since long arrays are not shown whole."""
    if isinstance(state, dict):
        return {name: _plain(each) for name, each in state.items()}
    if isinstance(state, tuple):
        return tuple(map(_plain, state))
    return state.tolist() if hasattr(state, "tolist") else state

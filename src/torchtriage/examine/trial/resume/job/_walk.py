"""Finds what the training's code holds: from the frames of its loop through its own objects, by the names it gave."""

from __future__ import annotations

import itertools
import os
import sys
from collections import deque
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from . import _draws

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType

DEEP = 7
MOST = 50_000  # objects that are looked at
LONG = 64  # numbers in a list that are told one by one
LIST = 200_000  # numbers in a list of which a mark is made
MANY = 4000  # entries of a dictionary, members of a list of other things
OPEN = frozenset({"omegaconf", "easydict", "ml_collections", "addict", "munch"})
NAMESPACES = frozenset({("argparse", "Namespace"), ("types", "SimpleNamespace")})
TEXT = 120
_LIBRARY = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120
_of_user: dict[str, bool] = {}  # files of modules


class Walk:
    """What was found. parts: (label, object) of modules, optimizers, schedulers, scalers, generators, tensors.

    numbers: plain values by label. of_user: tells the user's code from that of libraries.
    """

    def __init__(self, of_user: Callable[[CodeType | str], str | None]) -> None:
        import torch

        self.of_user = of_user
        optim = torch.optim.lr_scheduler
        self.kinds: tuple[tuple[str, Any], ...] = (
            ("module", torch.nn.Module),
            ("optimizer", torch.optim.Optimizer),
            ("scheduler", (optim.LRScheduler, optim.ReduceLROnPlateau)),
            ("scaler", torch.amp.GradScaler),
            ("loader", torch.utils.data.DataLoader),
            ("tensor", torch.Tensor),
        )
        self.parts: dict[str, list[tuple[str, Any]]] = {}
        self.numbers: dict[str, Any] = {}
        self._seen: set[int] = set()
        self._todo: deque[tuple[int, str, Any]] = deque()
        self._known: dict[type, str] = {}

    def run(self, frame: Any) -> Walk:
        """Looks at the user's frames from FRAME outwards, the outermost first, and at all that hangs on them."""
        for each in reversed(list(self._frames(frame))):
            code = each.f_code
            spare = "" if code.co_name == "<module>" else f"{code.co_name}."
            for name, value in list(each.f_locals.items()):
                if not name.startswith("__"):
                    taken = name in self.numbers or any(name == label for _, label, _ in self._todo)
                    self._see(0, f"{spare}{name}" if taken else name, value)
            self._drain()
        for module in list(sys.modules.values()):
            if isinstance(module, ModuleType) and self._is_users(getattr(module, "__file__", None)):
                for name, value in list(vars(module).items()):
                    if not name.startswith("__") and name not in self.numbers:
                        self._see(1, name if module.__name__ == "__main__" else f"{module.__name__}.{name}", value)
        self._drain()
        return self

    def _frames(self, frame: Any) -> Iterator[Any]:
        while frame is not None:
            if self.of_user(frame.f_code) is not None:
                yield frame
            frame = frame.f_back

    def _is_users(self, path: str | None) -> bool:
        if not path:
            return False
        known = _of_user.get(path)
        if known is None:
            plain = os.path.isabs(path) and not path.startswith(_LIBRARY) and "-packages/" not in path  # noqa: PTH117
            known = _of_user[path] = plain and self.of_user(path) is not None
        return known

    def _drain(self) -> None:
        while self._todo and len(self._seen) < MOST:
            depth, label, value = self._todo.popleft()
            for key, each in self._below(value):
                self._see(depth + 1, f"{label}{key}", each)
        self._todo.clear()

    def _see(self, depth: int, label: str, value: Any) -> None:
        if value is None or isinstance(value, (bool, int, float, complex, str)):
            self.numbers[label] = value[:TEXT] if isinstance(value, str) else value
            return
        if isinstance(value, itertools.count):
            self.numbers[label] = repr(value)
            return
        if isinstance(value, (type, ModuleType, FunctionType, MethodType)) or id(value) in self._seen:
            return
        self._seen.add(id(value))
        kind = self._kind(value)
        if kind:
            self.parts.setdefault(kind, []).append((label, value))
        elif hasattr(value, "item") and not getattr(value, "shape", (1,)):  # a number of numpy's
            self.numbers[label] = value.item()
            return
        if depth < DEEP:
            self._todo.append((depth, label, value))

    def _kind(self, value: Any) -> str:
        known = self._known.get(type(value))
        if known is None:
            known = next((name for name, kind in self.kinds if issubclass(type(value), kind)), "")
            known = known or ("generator" if _draws.is_generator(value) else "")
            self._known[type(value)] = known
        return known

    def _below(self, value: Any) -> Iterator[tuple[str, Any]]:
        kind = self._kind(value)
        if kind == "loader":
            names = ("dataset", "sampler", "batch_sampler", "generator", "collate_fn")
            yield from ((f".{name}", vars(value).get(name)) for name in names)
        elif kind == "module":
            own = type(value).__module__ != "torch" and self._is_own(type(value))
            skip = ("_parameters", "_buffers", "_modules", "training")
            yield from _attributes(value, skip) if own else ()
            yield from ((f".{name}", each) for name, each in value._modules.items() if each is not None)
        elif kind:
            return
        elif isinstance(value, dict):
            rows = list(value.items()) if len(value) <= MANY else []
            yield from ((f"[{key!r}]", each) for key, each in rows if isinstance(key, (str, int)))
        elif isinstance(value, (list, tuple, deque, set, frozenset)):
            yield from self._members(value)
        elif self._is_own(type(value)) or _is_open(type(value)):
            yield from _attributes(value, ())

    @staticmethod
    def _members(value: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(value, (set, frozenset)) or not value:
            return
        if all(isinstance(each, (bool, int, float)) for each in itertools.islice(value, LONG)):
            if len(value) <= LONG:
                yield "", repr(list(value))
            elif len(value) <= LIST:
                yield "", f"[{len(value)} values, {hash(tuple(value)):x}]"
            return
        if len(value) <= MANY:
            yield from ((f"[{number}]", each) for number, each in enumerate(value))

    def _is_own(self, kind: type) -> bool:
        module = sys.modules.get(kind.__module__)
        return kind.__module__ == "__main__" or self._is_users(getattr(module, "__file__", None))


def _is_open(kind: type) -> bool:
    return (kind.__module__, kind.__name__) in NAMESPACES or kind.__module__.partition(".")[0] in OPEN


def _attributes(value: Any, skip: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    inner = getattr(value, "__dict__", None)
    if isinstance(inner, dict):
        yield from ((f".{name}", each) for name, each in list(inner.items()) if name not in skip)

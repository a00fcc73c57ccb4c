"""What modules and parameters are called: by their path below the outermost module that holds them."""

from __future__ import annotations

import gc
import weakref
from typing import Any

_ROUNDS = 24  # times that all objects are looked through for modules, as new ones turn up
_WRAPPERS = ("_orig_mod.", "module.")  # of torch.compile and of DistributedDataParallel
_WRAPPING = frozenset({"DistributedDataParallel", "DataParallel", "OptimizedModule", "FullyShardedDataParallel"})


class Names:
    """Names are looked up by identity; a module may define equality."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._left = _ROUNDS
        self._roots: list[weakref.ref[Any]] = []

    def of(self, part: Any) -> str | None:
        """The path of PART as in named_modules or named_parameters, a root's class for a root; None for the unknown."""
        kept = self._known.get(id(part))
        if kept is None or kept[0]() is not part:
            return None
        return kept[1]

    def find(self, module: Any) -> str:
        """The path of MODULE, for which all modules that are alive are looked through where it is new."""
        name = self.of(module)
        if name is None and self._left > 0:
            self._left -= 1
            self._look()
            name = self.of(module)
        if name is None:
            name = type(module).__name__
            self._known[id(module)] = weakref.ref(module), name
        return name

    @property
    def roots(self) -> list[Any]:
        """The outermost modules that are alive, in the order in which they were found."""
        return [root for kept in self._roots if (root := kept()) is not None]

    def _look(self) -> None:
        import torch

        kind = torch.nn.Module
        found = [each for each in gc.get_objects() if issubclass(type(each), kind) and "_modules" in each.__dict__]
        held = {id(child) for each in found for child in each.__dict__["_modules"].values()}
        known = {id(each) for each in self.roots}
        tops = [each for each in found if id(each) not in held]
        self._roots += [weakref.ref(each) for each in tops if id(each) not in known]
        for top in tops:
            cut = type(top).__name__ in _WRAPPING
            for path, part in (*top.named_modules(), *top.named_parameters(), *top.named_buffers()):
                own = _plain(path) if cut else path.replace("_orig_mod.", "")
                if id(part) not in self._known or self._known[id(part)][0]() is not part:
                    self._known[id(part)] = weakref.ref(part), own or type(top).__name__


def _plain(path: str) -> str:
    """PATH without the names that a wrapper adds."""
    for prefix in _WRAPPERS:
        path = path.removeprefix(prefix)
    return "" if path in {"module", "_orig_mod"} else path.replace("._orig_mod", "")

"""The second look: every operation of a few steps with the marks of what it got and gave, and single samples."""

from __future__ import annotations

import re
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from . import _digest
from ._digest import crc, mark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._watch import Watch

OPERATIONS = 60_000  # that are written down
ROWS = 20_000  # samples
_NODES = 20_000  # of a graph, that are given to the module which made them
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_FILLING = frozenset(
    {"normal_", "uniform_", "random_", "fill_", "zero_", "copy_", "bernoulli_", "exponential_", "set_"}
)
_EMPTY = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_"})


class Closer:
    """wanted: {"ops": [first turn, last turn], "rows": true, "held": true}, each of which may be missing.

    open: operations are written down now. fresh: parameters have not been looked at in this turn.
    """

    def __init__(self, watch: Watch, wanted: dict[str, Any]) -> None:
        self.watch = watch
        self.first: int = (wanted.get("ops") or (-1, -1))[0]
        self.last: int = (wanted.get("ops") or (-1, -1))[1]
        self.rows, self.held, self.fresh = bool(wanted.get("rows")), bool(wanted.get("held")), True
        self.open = False
        self._mode: Any = None
        self._nodes: dict[Any, str] = {}
        self._anomalies: Any = None
        self._left, self._samples, self._order = OPERATIONS, 0, 0

    def turned(self, turn: int) -> None:
        """TURN begins."""
        self.fresh = True
        if not self.open and self.first <= turn <= self.last:
            self._enter()

    def close(self) -> None:
        """A turn has ended."""
        self._nodes.clear()
        if self.open and self.watch.sequence.turn >= self.last:
            self._leave()

    def forked(self) -> None:
        self.open, self._left, self.rows = False, 0, False

    def row(self, leaves: list[Any]) -> None:
        """Marks of the single samples of a batch: of its first tensor that has as many rows as any."""
        leaf = next(
            (each for each in leaves if hasattr(each, "dim") and each.dim() and each.device.type == "cpu"), None
        )
        if leaf is None or self._samples >= ROWS:
            return
        whole = leaf.detach().contiguous()
        marks = [crc(each) for each in whole.view(whole.shape[0], -1)] if whole.numel() else []
        self._samples += len(marks)
        self.watch.sequence.line("rows", rows=marks)

    def made(self, name: str, output: Any) -> None:
        """The nodes of the graph behind OUTPUT that nobody has made yet were made within the module NAME."""
        waiting = [each.grad_fn for each in _tensors(output) if each.grad_fn is not None]
        while waiting and len(self._nodes) < _NODES:
            node = waiting.pop()
            if node not in self._nodes:
                self._nodes[node] = name
                waiting += [following for following, _ in node.next_functions if following is not None]

    def _enter(self) -> None:
        import torch

        self.open, _digest.limit = True, float("inf")
        self._mode = _mode(self)
        self._mode.__enter__()
        self._anomalies = torch.autograd.set_detect_anomaly(True, check_nan=False)

    def _leave(self) -> None:
        self.open, _digest.limit = False, _digest.SMALL
        self._anomalies.__exit__(None, None, None)
        from torch.utils._python_dispatch import _get_current_dispatch_mode

        if _get_current_dispatch_mode() is self._mode:  # leaving it takes off what lies on top: one of the job's stays
            self._mode.__exit__(None, None, None)

    def operation(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Calls FUNC, and writes down what it got and gave."""
        watch = self.watch
        if not self.open or self._left <= 0 or watch.idle_but(watch.propagating):
            return func(*args, **kwargs)
        self._left -= 1
        own = func.__name__.partition(".")[0]
        given = args[1:] if own in _FILLING else args
        taken = [] if own in _EMPTY else list(_tensors((given, kwargs)))
        got = [_mark(each) for each in taken]
        numbers = zlib.crc32(repr(list(_plain((given, kwargs)))).encode())
        result = func(*args, **kwargs)
        results = [] if own in _EMPTY else list(_tensors(result))
        gave = [_mark(each) for each in results]
        alias = {"into": _storages(results)} if own.endswith("_") else {}
        self._write(func, got=got, gave=gave, numbers=numbers, of=_storages(taken), **alias)
        return result

    def _write(self, func: Any, **told: Any) -> None:
        import torch

        module, path, line = self._place()
        seeded = torch.Tag.nondeterministic_seeded in func.tags
        told |= {"op": str(func), "module": module, "calls": self.watch.calls}
        told["part"] = "backward" if self.watch.propagating else "update" if self.watch.updating else "forward"
        self.watch.sequence.line("op", **told, path=path, line=line, **({"random": True} if seeded else {}))

    def _place(self) -> tuple[str | None, str, int]:
        """The module and the user's line that an operation belongs to: in a backward, those of its forward."""
        import torch

        watch = self.watch
        node = torch._C._current_autograd_node() if watch.propagating else None
        if node is None:
            module = watch.names.find(watch.stack[-1]) if watch.stack else None
            return module, *watch.job.caller()
        path, line = _made_at(node, watch.job.path_of)
        return self._nodes.get(node) or None, path, line


def _mode(closer: Closer) -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Operations(TorchDispatchMode):  # type: ignore[misc]  # torch's types are not followed
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return closer.operation(func, args, kwargs or {})

    return Operations()


def _made_at(node: Any, path_of: Any) -> tuple[str, int]:
    """The user's innermost line among those that anomaly detection has kept of a node."""
    for text in reversed(node.metadata.get("traceback_") or ()):
        for path, line in reversed(_FRAME.findall(text)):
            own = path_of(path)
            if own is not None:
                return own, int(line)
    return "", 0


def _mark(tensor: Any) -> Any:
    try:
        found = mark(tensor)
    except (RuntimeError, ValueError, NotImplementedError):
        return None
    return found if found is None or isinstance(found, int) else _read(found)


def _storages(tensors: list[Any]) -> list[int]:
    """Which memory they lie in: what is written into shows in all that lies there."""
    with suppress(RuntimeError, NotImplementedError):
        return [each.untyped_storage().data_ptr() for each in tensors]
    return []


def _read(pair: Any) -> int:
    low, high = pair.tolist()
    return int(((low & 0xFFFFFFFFFFFFFFFF) << 64) | (high & 0xFFFFFFFFFFFFFFFF))


def _tensors(value: Any) -> Iterator[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(each)


def _plain(value: Any) -> Iterator[Any]:
    """Numbers among what an operation is given."""
    if isinstance(value, (bool, int, float)):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _plain(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _plain(each)

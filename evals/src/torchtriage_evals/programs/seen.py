"""What checks look at: what autograd keeps, which operations ran, what several ranks did. Counts, never the clock."""

from __future__ import annotations

import os
import pickle
import select
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakSet

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode


class _Kept:
    """One tensor that autograd saved for a backward."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor.detach()


class Held:
    """While this is on, what autograd saves is counted; `now` is how much of it is still kept."""

    def __init__(self) -> None:
        self._kept: WeakSet[_Kept] = WeakSet()
        self._hooks = saved_tensors_hooks(self._pack, lambda kept: kept.tensor)

    def _pack(self, tensor: torch.Tensor) -> _Kept:
        kept = _Kept(tensor)
        self._kept.add(kept)
        return kept

    @property
    def now(self) -> int:
        return len(self._kept)

    def __enter__(self) -> Held:
        self._hooks.__enter__()
        return self

    def __exit__(self, *given: Any) -> None:
        self._hooks.__exit__(*given)


class Operations(TorchDispatchMode):  # type: ignore[misc]
    """While this is on: how often each operation of ATen ran, and of how many elements its largest result was."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.largest = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        self.counts[str(func.overloadpacket).removeprefix("aten.")] += 1
        for each in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(each, torch.Tensor):
                self.largest = max(self.largest, each.untyped_storage().nbytes() // each.element_size())
        return result


def on_ranks(work: Callable[[int], Any], count: int = 2, limit: float = 12.0) -> list[Any]:
    """What WORK gave on each of COUNT ranks that met over gloo; raises AssertionError for a rank that gave nothing.

    A rank's result is pickled: tensors are detached and cloned before.
    """
    ends, until = [_rank(work, rank, count) for rank in range(count)], time.monotonic() + limit
    said = [_whole(end, until) for end in ends]
    for rank, each in enumerate(said):
        if not each:
            raise AssertionError(f"rank {rank} {'stands still' if each is None else 'ended without a result'}")
    found: list[tuple[str, Any]] = [pickle.loads(each) for each in said if each]  # noqa: S301 - written above
    for rank, (kind, given) in enumerate(found):
        if kind != "gave":
            raise AssertionError(f"rank {rank}: {given}")
    return [given for _, given in found]


def _rank(work: Callable[[int], Any], rank: int, count: int) -> int:
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        return reading
    os.close(reading)
    with os.fdopen(writing, "wb") as end:
        end.write(pickle.dumps(_result(work, rank, count)))
    os._exit(0)


def _result(work: Callable[[int], Any], rank: int, count: int) -> tuple[str, Any]:
    from datetime import timedelta

    import torch.distributed as dist

    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count))
    try:
        dist.init_process_group(
            "gloo", f"file://{Path('meeting').absolute()}", timedelta(seconds=3), world_size=count, rank=rank
        )
        return "gave", work(rank)
    except BaseException as error:  # noqa: BLE001 - a rank that fails says so and ends
        return "raised", f"{type(error).__name__}: {error}"


def _whole(end: int, until: float) -> bytes | None:
    """All that is written to END; None when its other side is still open UNTIL then."""
    said = b""
    while True:
        left = until - time.monotonic()
        if left <= 0 or not select.select([end], [], [], left)[0]:
            return None
        if not (part := os.read(end, 1 << 16)):
            return said
        said += part

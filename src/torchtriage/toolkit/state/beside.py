"""Work for other threads, also while the interpreter ends: it lets no thread begin then, and a save must still end."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")


class Beside:
    """Threads for as long as the block lasts; where none can begin, the caller's own does the work."""

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, name)

    def __enter__(self) -> Beside:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    def submit(self, work: Callable[..., T], *given: Any) -> Future[T]:
        try:
            return self._pool.submit(work, *given)
        except RuntimeError:  # "cannot schedule new futures after interpreter shutdown"
            done: Future[T] = Future()
            done.set_result(work(*given))
            return done

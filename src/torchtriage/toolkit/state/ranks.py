"""The ranks of a training act together: what one of them cannot do, none of them counts as done."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from torchtriage.core.errors import TriageError

T = TypeVar("T")


class Ranks:
    """This rank among COUNT. Their words travel over gloo, in a group of their own: a save may run beside training."""

    def __init__(self) -> None:
        self.index, self.count = 0, 1
        self._group: Any = None

    def meet(self) -> None:
        """Looks who is there; on all ranks of a job at once, and first of all from the thread that trains."""
        there = sys.modules.get("torch.distributed")
        if self._group is None and there is not None and there.is_available() and there.is_initialized():
            self.index, self.count = there.get_rank(), there.get_world_size()
            if self.count > 1:
                self._group = there.new_group(backend="gloo")

    def together(self, work: Callable[[], T]) -> list[T]:
        """What WORK gave on each rank; where it failed on one, it has failed on all, and each says on which and why."""
        if self.count == 1:
            return [work()]
        error: BaseException | None = None
        said: dict[str, Any] = {}
        try:
            said = {"gave": work()}
        except BaseException as failed:  # noqa: BLE001 - the others wait for our word, whatever happened
            error, said = failed, {"failed": f"{failed}" or type(failed).__name__}
        try:
            heard = self._heard(said)
        except RuntimeError as lost:
            do = "The steps before are as they were. Look at what the other ranks have said last."
            what = f"a rank has ended, or does not answer: {str(lost).splitlines()[0]}"
            raise error or TriageError(what, "TrainingState", do) from lost
        if error is not None:
            raise error
        failed_on = [f"rank {n}: {each['failed']}" for n, each in enumerate(heard) if "failed" in each]
        if failed_on:
            raise TriageError("; ".join(failed_on), "TrainingState", "No rank has saved or loaded anything.")
        return [each["gave"] for each in heard]

    def _heard(self, said: Any) -> list[Any]:
        """What each rank SAID, as JSON: torch's own way of sending objects is pickle."""
        import torch
        import torch.distributed as dist

        words = torch.frombuffer(bytearray(json.dumps(said).encode()), dtype=torch.uint8)
        sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(self.count)]
        dist.all_gather(sizes, torch.tensor([len(words)]), group=self._group)
        longest = max(int(each) for each in sizes)
        heard = [torch.empty(longest, dtype=torch.uint8) for _ in range(self.count)]
        padded = torch.zeros(longest, dtype=torch.uint8)
        padded[: len(words)] = words
        dist.all_gather(heard, padded, group=self._group)
        return [json.loads(bytes(each[: int(size)].numpy().tobytes())) for each, size in zip(heard, sizes, strict=True)]

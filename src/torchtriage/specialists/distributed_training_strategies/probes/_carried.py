"""What collectives of the user's own carry between the steps of an optimizer: gradients, or weights."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torchtriage.examine.run.job.job import Job

    Carry = Callable[[Sequence[Any], Sequence[Any]], None]

WHOLE = 0.9  # of a model's values in pieces of other sizes: its gradients, flattened
_MOST = 4096  # tensors that are noted between two steps
listening: dict[int, Carry] = {}  # by the job's identity: who is told of collectives, until they are wrapped


class Carried:
    """Collectives since the last step of an optimizer. What a forward pass asks for are activations, and left out.

    gradients: number of values and address of each tensor, while a backward runs or after it; weights: values, outside.
    groups: ranks that exchanged gradients. calls: collectives in all.
    """

    def __init__(self, job: Job) -> None:
        import torch

        self.job = job
        self.task: Callable[[], int] = getattr(torch._C, "_current_graph_task_id", lambda: -1)
        self.gradients: list[tuple[int, int]] = []
        self.weights: list[int] = []
        self.groups: set[tuple[int, ...]] = set()
        self.calls = self.backwards = 0

    def told(self, tensors: Sequence[Any], given: Sequence[Any]) -> None:
        """A collective on TENSORS begins; GIVEN are all its arguments."""
        self.calls += 1
        if self.job.learning or len(self.gradients) + len(self.weights) >= _MOST:
            return
        if self.task() != -1 or self.job.clock.count("backwards") > self.backwards:
            self.gradients += [(each.numel(), each.data_ptr()) for each in tensors if type(each).__name__ != "DTensor"]
            self.groups.add(_ranks(given))
        else:
            self.weights += [each.numel() for each in tensors]

    def clear(self) -> None:
        """An optimizer has stepped."""
        self.backwards = self.job.clock.count("backwards")
        if self.calls:
            self.gradients, self.weights, self.groups = [], [], set()

    def among(self, tensors: Sequence[Any]) -> list[bool]:
        """For each of TENSORS whether its gradient was carried: itself, one of its size, or all of them in one piece."""
        sizes = {each.numel() for each in tensors}
        pieces = sum(values for values, _ in self.gradients if values not in sizes)
        if pieces >= WHOLE * sum(each.numel() for each in tensors):
            return [True] * len(tensors)
        at = {address for _, address in self.gradients}
        left = Counter(values for values, _ in self.gradients)
        found = []
        for each in tensors:
            grad = each.grad
            itself = grad is not None and grad.data_ptr() in at
            found.append(itself or left[each.numel()] > 0)
            left[each.numel()] -= 1
        return found


def _ranks(given: Sequence[Any]) -> tuple[int, ...]:
    """Those of the process group among the arguments of a collective, or of the one that has all."""
    from torch import distributed

    world = distributed.group.WORLD
    group = next((each for each in given if isinstance(each, distributed.ProcessGroup)), world)
    return tuple(sorted(distributed.get_process_group_ranks(group)))

"""What collectives of the user's own carry between the steps of an optimizer: gradients, or weights."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torchtriage.examine.run.job.job import Job

    Carry = Callable[[Sequence[Any], Sequence[Any]], None]
    Pieces = list[tuple[int, int]]

PADDED = 8  # values by which a flattened model may be longer than its parts
LINES = 3  # the one that carries, and those that call it
BUCKETED = 2000  # tensors of an optimizer, of which neighbours are looked for
_MOST = 4096  # tensors that are noted between two steps
listening: dict[int, Carry] = {}  # by the job's identity: who is told of collectives, until they are wrapped


class Carried:
    """Collectives since the last step of an optimizer. What a forward pass asks for are activations, and left out.

    Of each tensor the number of values and the address: within: while a backward ran; after: after it; weights: before.
    groups: ranks that exchanged gradients. calls: collectives in all. most: values in them between two steps, so far.
    """

    def __init__(self, job: Job) -> None:
        import torch

        self.job = job
        self.task: Callable[[], int] = getattr(torch._C, "_current_graph_task_id", lambda: -1)
        self.within: Pieces = []
        self.after: Pieces = []
        self.weights: Pieces = []
        self.groups: set[tuple[int, ...]] = set()
        self.asked: list[tuple[str, int]] = []  # the lines that first carried gradients after a backward
        self.calls = self.backwards = self.values = self.most = 0

    def told(self, tensors: Sequence[Any], given: Sequence[Any]) -> None:
        """A collective on TENSORS begins; GIVEN are all its arguments."""
        self.calls += 1
        if self.job.learning or len(self.within) + len(self.after) + len(self.weights) >= _MOST:
            return
        self.values += sum(each.numel() for each in tensors)
        self.most = max(self.most, self.values)
        pieces = [(each.numel(), each.data_ptr()) for each in tensors if type(each).__name__ != "DTensor"]
        if self.task() != -1:
            self.within += pieces
        elif self.job.clock.count("backwards") > self.backwards:
            self.after += pieces
            self.asked = self.asked or self.job.callers(LINES)
        else:
            self.weights += pieces
            return
        self.groups.add(_ranks(given))

    def clear(self) -> None:
        """An optimizer has stepped."""
        self.backwards = self.job.clock.count("backwards")
        if self.calls:
            self.values = 0
            self.within, self.after, self.weights, self.groups = [], [], [], set()

    def gradients(self, tensors: Sequence[Any]) -> list[bool]:
        """For each of TENSORS whether its gradient was carried: itself, a copy of its size, in a bucket, or all in one.

        While a backward runs, gradients of activations are carried too, so that there only the thing itself counts.
        """
        if _in_pieces(self.after, tensors):
            return [True] * len(tensors)
        itself, left = {*self.within, *self.after}, Counter(values for values, _ in self.after)
        bucketed = _in_buckets([values for values, _ in self.after], [each.numel() for each in tensors])
        found = []
        for number, each in enumerate(tensors):
            values, grad = each.numel(), each.grad
            alone = (grad is not None and (values, grad.data_ptr()) in itself) or left[values] > 0
            found.append(alone or number in bucketed)
            left[values] -= 1
        return found

    def shifted(self, tensors: Sequence[Any]) -> int:
        """How many values of the weights in TENSORS were carried."""
        if _in_pieces(self.weights, tensors):
            return sum(int(each.numel()) for each in tensors)
        itself = {*self.weights}
        return int(sum(each.numel() for each in tensors if (each.numel(), each.data_ptr()) in itself))


def _in_pieces(pieces: Pieces, tensors: Sequence[Any]) -> bool:
    """Whether one of PIECES, or those together that have the size of none of TENSORS, is as long as all of them."""
    whole, sizes = sum(each.numel() for each in tensors), {each.numel() for each in tensors}
    lengths = [values for values, _ in pieces]
    others = sum(values for values in lengths if values not in sizes)
    return len(tensors) > 1 and any(whole <= values < whole + PADDED for values in (*lengths, others))


def _in_buckets(pieces: list[int], sizes: list[int]) -> set[int]:
    """The numbers of neighbours that together are as long as a piece, where only one such row of them is.

    SIZES: of the tensors, in order; buckets are filled from either end.
    """
    if len(sizes) > BUCKETED:
        return set()
    ends = {whole: number for number, whole in enumerate(accumulate(sizes, initial=0))}  # after so many values
    found: set[int] = set()
    for piece in pieces:
        rows = [(first, ends[begun + piece]) for begun, first in ends.items() if begun + piece in ends]
        several = [row for row in rows if row[1] - row[0] > 1]
        if len(rows) == 1 and several:
            found.update(range(*several[0]))
    return found


def _ranks(given: Sequence[Any]) -> tuple[int, ...]:
    """Those of the process group among the arguments of a collective, or of the one that has all."""
    from torch import distributed

    world = distributed.group.WORLD
    group = next((each for each in given if isinstance(each, distributed.ProcessGroup)), world)
    return tuple(sorted(distributed.get_process_group_ranks(group)))

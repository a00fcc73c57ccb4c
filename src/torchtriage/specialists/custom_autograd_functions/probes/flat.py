"""What a run writes down about operations whose gradient is zero everywhere, between parameters and the loss."""

from __future__ import annotations

import re
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import replace

from .events import Flat

if TYPE_CHECKING:
    from torchtriage.examine.run.job.events import Further
    from torchtriage.examine.run.job.job import Job

_LOOKS = 3  # backward passes of each line that are looked at: a loss is made of the same operations each time
_LINES = 16
_NODES = 20_000  # operations of a graph, beyond which nothing is said of it: some 20 ms
_NAMED = 3
_FOLLOWED = 3  # steps: the first may end before the loss is made again
_MOST = 4  # lines
_STEPS = 5  # of an optimizer, that find no gradient but zero
_FLAT = re.compile(r"(Round|Floor|Ceil|Trunc|Sign)Backward\d")  # torch's own: a Function of the user's has no number
_LEAF = "torch::autograd::AccumulateGrad"


def flat(job: Job) -> None:
    """Parameters that the loss is reached from only through round, floor, ceil, trunc or sign."""
    job.orderly()
    watch = _Flat(job)
    job.listen(watch.backward, watch.stepping)


class _Calls:
    """The lines that call flat operations on what has a graph, in the next steps."""

    def __init__(self, job: Job, probe: str, ops: set[str]) -> None:
        self.job, self.inner, self.ops = job, f"{probe} {' '.join(sorted(ops))}", ops
        self.lines: dict[tuple[str, int], str] = {}
        self.left = _FOLLOWED
        job.place(self.inner, self.follow)

    def follow(self, job: Job) -> None:
        import torch

        for op in self.ops:
            for owner, name in ((torch, op), (torch.Tensor, op), (torch.Tensor, f"{op}_")):
                job.wrap(owner, name, partial(self.noting, op))
        job.listen(self.iterated)

    def iterated(self, _step: int) -> None:
        self.left -= 1
        if not self.left:
            self.job.withdraw(self.inner)

    def noting(self, op: str, original: Any) -> Any:
        def noted(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            node = getattr(result, "grad_fn", None)
            if node is not None and _FLAT.fullmatch(str(node.name())):
                self.lines.setdefault(self.job.caller(), op)
            return result

        return noted

    def further(self) -> Further:
        return [(f"{op} is called here", *where) for where, op in list(self.lines.items())[:_MOST]]


class _Hidden:
    """Parameters that a line's loss reaches only so; steps: of an optimizer, that found no gradient but zero."""

    def __init__(self, event: Flat, owners: list[Any], calls: _Calls) -> None:
        self.event, self.steps, self.calls = event, 0, calls
        self.owners = {id(each): weakref.ref(each) for each in owners}

    def of(self, optimizer: Any) -> list[Any]:
        """Those that OPTIMIZER is to move."""
        every = (each for group in optimizer.param_groups for each in group["params"])
        return [each for each in every if id(each) in self.owners and self.owners[id(each)]() is each]


class _Flat:
    def __init__(self, job: Job) -> None:
        self.job, self.probe = job, job.placing
        self.looks: dict[tuple[str, int], int] = {}
        self.hidden: dict[tuple[str, int], _Hidden] = {}

    def backward(self, roots: Any) -> None:
        place = self.job.caller()
        looks = self.looks.get(place, 0)
        if looks >= _LOOKS or (place not in self.looks and len(self.looks) >= _LINES):
            return
        self.looks[place] = looks + 1
        starts = [root.grad_fn for root in roots if root.grad_fn is not None]
        every, ops = _reached(starts, through=True)
        if not ops or place in self.hidden:
            return
        passed, _ = _reached(starts, through=False)
        owners = [owner for number, owner in every.items() if number not in passed]
        if owners:
            frame = self.job.frame()
            root = self.job.written.root_of(frame) if frame is not None else 0
            path, line = place
            event = Flat(ops=sorted(ops), parameters=0, of=len(every), names=(), path=path, line=line, root=root)
            self.hidden[place] = _Hidden(event, owners, _Calls(self.job, self.probe, ops))

    def stepping(self, optimizer: Any) -> None:
        """What something else has given a gradient is trained; of the others theirs is read as it becomes known."""
        import torch

        for hidden in self.hidden.values():
            owners = hidden.of(optimizer) if hidden.steps < _STEPS else []
            if owners:
                none = torch.zeros((), dtype=torch.bool, device=owners[0].device)
                anys = [none if each.grad is None else each.grad.detach().any().to(none.device) for each in owners]
                self.job.late.read_all(torch.stack(anys), partial(self.judge, hidden, owners))

    def judge(self, hidden: _Hidden, owners: list[Any], values: list[float]) -> None:
        dead = [each for each, value in zip(owners, values, strict=True) if not value]
        for each in owners:
            if not any(each is other for other in dead):
                hidden.owners.pop(id(each), None)
        hidden.steps += bool(dead)
        if dead and hidden.steps == _STEPS:
            names = [name for each in dead[:_NAMED] if (name := self.job.module_name(each))]
            calls = hidden.calls.further()
            self.job.record(replace(hidden.event, parameters=len(dead), steps=_STEPS, names=names, further=calls))


def _reached(starts: list[Any], *, through: bool) -> tuple[dict[int, Any], set[str]]:
    """The leaves that a graph leads to, by identity, THROUGH flat operations or not, and the names of those it has;
    nothing of a graph that is too large.
    """
    queue, seen = list(starts), set(starts)
    leaves: dict[int, Any] = {}
    ops: set[str] = set()
    for node in queue:
        if len(seen) > _NODES:
            return {}, set()
        name = str(node.name())
        if name == _LEAF:
            leaves[id(node.variable)] = node.variable
        flat = _FLAT.fullmatch(name)
        if flat is not None:
            ops.add(flat[1].lower())
        if flat is None or through:
            below = {each for each, _ in node.next_functions if each is not None} - seen
            seen |= below
            queue += below
    return leaves, ops

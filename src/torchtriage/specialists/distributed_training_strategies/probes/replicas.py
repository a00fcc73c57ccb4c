"""What a run writes down about DistributedDataParallel: passes that go past it, and averages that nobody needs."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from . import _carried
from ._functions import wrap
from .events import Replica

if TYPE_CHECKING:
    from types import FrameType

    from torchtriage.examine.run.job.job import Job

_TIMES = frozenset({3, 10, 100, 1000, 10_000, 100_000})  # when something that keeps happening is written down again
_AVERAGING = ("all_reduce", "all_reduce_coalesced", "reduce", "all_gather", "all_gather_into_tensor")
_watches: weakref.WeakKeyDictionary[Any, _Replicas] = weakref.WeakKeyDictionary()


def replicas(job: Job) -> None:
    """Of each DistributedDataParallel: steps that learned past it, and backward passes that it averaged in vain."""
    import torch

    if not torch.distributed.is_available():
        return
    from torch.nn.parallel import DistributedDataParallel

    job.orderly()
    watch = _watches[job] = _Replicas(job, DistributedDataParallel)
    job.listen(watch.watching, watch.forward, watch.backward, watch.backwarded, watch.stepping, watch.ending)
    job.on("skipped", lambda optimizer, _scaler: watch.stepping(optimizer))
    job.wrap(DistributedDataParallel, "_pre_forward", watch.passing)


def replicas_made(job: Job) -> None:
    """Each DistributedDataParallel that is made, and collectives by hand that carry a whole model: seen always."""
    import torch

    if not torch.distributed.is_available():
        return
    from torch.nn.parallel import DistributedDataParallel

    watch = _watches.pop(job)
    watch.carried = _carried.listening.pop(id(job), None)
    for each in job.alive(DistributedDataParallel):
        watch.add(each)
    job.wrap(DistributedDataParallel, "__init__", watch.making)
    for name in _AVERAGING:
        wrap(job, name, watch.averaging)
    wrap(job, "broadcast", watch.sending)


class _Replica:
    """Of one DistributedDataParallel, since the last step of an optimizer that has parameters of it and since ever.

    through, past: the last step's passes with gradients went through the wrapper, to the module in it directly.
    averaged: the lines of the backward passes whose gradients were averaged, since they were cleared last. held: how
    many of the step's backward passes ran within no_sync(), though their forward passes had decided to average.
    """

    def __init__(self, wrapper: Any, number: int, module: type) -> None:
        self.wrapper = weakref.ref(wrapper)
        owners = [each for each in wrapper.module.parameters() if each.requires_grad]
        self.owners = {id(each) for each in owners}
        self.inside = {id(each) for each in wrapper.module.modules() if isinstance(each, module)}
        self.sizes = {each.numel() for each in owners} - {1}
        self.first = weakref.ref(owners[0]) if owners else lambda: None
        self.optimizers: weakref.WeakSet[Any] = weakref.WeakSet()  # that stepped after a pass through the wrapper
        self.count = 0  # of steps that were wrong, when that was last told
        self.by_hand = 0  # values in collectives of the user's own since the last pass, that may be its gradients
        self.passed = 0  # passes of models until the last such collective
        self.whole = True  # the step has been watched from its start
        self.event = Replica(
            number=number,
            name=type(wrapper.module).__name__,
            used=0,
            bypassed=0,
            running=0,
            averages=False,
            several=0,
            spared=0,
            backwards=0,
            late=0,
            size=sum(each.numel() for each in owners),
            entered=None,
            path="",
            line=0,
            again="",
            at=0,
        )
        self.begin()

    def begin(self) -> None:
        """A step begins."""
        self.through = False
        self.past: tuple[str, int] | None = None
        self.pending: bool | None = None  # the pass before the next backward will be averaged, or not
        self.averaged: list[tuple[str, int]] = []
        self.quiet = self.held = 0
        self.noted: tuple[int, int] | None = None

    def state(self) -> tuple[int, int] | None:
        grad = getattr(self.first(), "grad", None)
        return (id(grad), grad._version) if grad is not None else None

    def synchronises(self) -> bool:
        return bool(getattr(self.wrapper(), "require_backward_grad_sync", True))

    def runs(self, frame: FrameType) -> bool:
        """Whether FRAME is one of a method of what is wrapped."""
        return id(frame.f_locals.get("self")) in self.inside

    def trained_by(self, optimizer: Any) -> bool:
        return any(id(each) in self.owners for group in optimizer.param_groups for each in group["params"])


class _Replicas:
    def __init__(self, job: Job, wrapper: type) -> None:
        import torch

        self.job, self.wrapper, self.module = job, wrapper, torch.nn.Module
        self.with_gradients = torch.is_grad_enabled
        self.known: list[_Replica] = []
        self.around: dict[tuple[int, int], bool] = {}
        self.carried: _carried.Carry | None = None  # who else is told of collectives

    def add(self, wrapper: Any) -> None:
        self.known.append(_Replica(wrapper, len(self.known), self.module))

    def making(self, original: Any) -> Any:
        def __init__(wrapper: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
            original(wrapper, *args, **kwargs)
            self.add(wrapper)

        return __init__

    def averaging(self, original: Any) -> Any:
        def collective(*args: Any, **kwargs: Any) -> Any:
            tensors = _tensors([*args, *kwargs.values()])
            if self.carried is not None:
                self.carried(tensors, [*args, *kwargs.values()])
            sizes = [each.numel() for each in tensors]
            passed = self.job.clock.count("forwards")
            for replica in self.known:
                replica.by_hand = replica.by_hand if replica.passed == passed else 0
                event = replica.event
                replica.by_hand += sum(size for size in sizes if size in replica.sizes or size * 2 >= event.size)
                event.averages = event.averages or replica.by_hand * 2 >= event.size
                replica.passed = passed
            return original(*args, **kwargs)

        return collective

    def sending(self, original: Any) -> Any:
        def broadcast(*args: Any, **kwargs: Any) -> Any:
            if self.carried is not None:
                given = [*args, *kwargs.values()]
                self.carried(_tensors(given), given)
            return original(*args, **kwargs)

        return broadcast

    def passing(self, original: Any) -> Any:
        def _pre_forward(wrapper: Any, *args: Any, **kwargs: Any) -> Any:
            if self.with_gradients():
                for replica in self.known:
                    if replica.wrapper() is wrapper:
                        replica.through, replica.pending = True, replica.synchronises()
                        replica.event.entered = replica.event.entered or self.job.caller()
            return original(wrapper, *args, **kwargs)

        return _pre_forward

    def watching(self) -> None:
        for replica in self.known:
            replica.begin()
            replica.whole = False

    def forward(self, module: Any, _args: Any, _kwargs: Any) -> None:
        if not self.known or isinstance(module, self.wrapper) or not self.with_gradients():
            return
        for replica in self.known:
            if not replica.through and self.reaches(module, replica):
                replica.past = self.job.caller(replica.runs)

    def reaches(self, module: Any, replica: _Replica) -> bool:
        """Whether a call of MODULE is one of what is wrapped, of a part of it, or of what holds it unwrapped."""
        inner = getattr(module, "_orig_mod", module)
        if id(module) in replica.inside or id(inner) in replica.inside:
            return True
        key = (id(inner), replica.event.number)
        if key not in self.around:
            wrapper: Any = replica.wrapper()
            held = {id(each) for each in inner.modules()}
            self.around[key] = wrapper is not None and id(wrapper) not in held and id(wrapper.module) in held
        return self.around[key]

    def backward(self, _roots: Any) -> None:
        for replica in self.known:
            if replica.averaged and replica.state() != replica.noted:
                replica.averaged = []  # cleared, or changed: what comes next is added to nothing
            replica.held += replica.pending is True and not replica.synchronises()

    def backwarded(self, _roots: Any) -> None:
        for replica in self.known:
            if replica.pending is not None:
                if replica.pending:
                    replica.averaged.append(self.job.caller())
                replica.quiet += not replica.pending
                replica.pending, replica.noted = None, replica.state()

    def stepping(self, optimizer: Any) -> None:
        for replica in self.known:
            if not replica.trained_by(optimizer):
                continue
            if replica.whole and (replica.wrapper() is not None or optimizer in replica.optimizers):
                self.judge(replica, optimizer)
            replica.begin()
            replica.whole = True

    def judge(self, replica: _Replica, optimizer: Any) -> None:
        event = replica.event
        if replica.through:
            replica.optimizers.add(optimizer)
            event.used += 1
            event.running = 0
        elif replica.past is not None and replica.state() is not None:
            event.path, event.line = replica.past
            event.bypassed, event.running = event.bypassed + 1, event.running + 1
        event.spared += bool(replica.quiet)
        event.late += replica.held
        alike = len(set(replica.averaged)) == 1 or replica.held  # not the passes of several losses, one after the other
        if len(replica.averaged) > 1 and alike and not replica.quiet:
            event.several += 1
            event.backwards += len(replica.averaged)
            event.again, event.at = replica.averaged[0]
        count = event.running + event.several
        if count != replica.count and {event.running, event.several} & _TIMES:
            replica.count = count
            self.job.record(event)

    def ending(self) -> None:
        for replica in self.known:
            if replica.event.used or replica.event.bypassed:
                self.job.record(replica.event)


def _tensors(values: list[Any]) -> list[Any]:
    """Those given to a collective, one by one or in lists."""
    flat = [each for value in values for each in (value if isinstance(value, (list, tuple)) else [value])]
    return [each for each in flat if hasattr(each, "numel")]

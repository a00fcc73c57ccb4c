"""What a run writes down about how a DistributedDataParallel is set up: buckets, the search for unused parameters."""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import Wrapper

from ._functions import wrap

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_LOOKS = 10  # passes in which the wrapper itself takes notes; later it does in each hundredth
_TOLD = frozenset({0, _LOOKS, 64, 512, 4096, 32_768, 262_144})  # steps after which it is written down
_NAMES = 300  # of parameters that learn


def wrappers(job: Job) -> None:
    """Of each DistributedDataParallel, what it notes of itself in its first passes, and at the end of the job."""
    import torch

    if not torch.distributed.is_available():
        return
    from torch.nn.parallel import DistributedDataParallel

    watch = _Watch(job, DistributedDataParallel)
    job.listen(watch.iterated, watch.ending)
    job.wrap(DistributedDataParallel, "__init__", watch.making)
    wrap(job, "destroy_process_group", watch.destroying)


class _Watch:
    """used: the wrappers in a pass of which some parameter was not used. looks: how often each was looked at."""

    def __init__(self, job: Job, kind: type) -> None:
        self.job, self.probe, self.kind = job, job.placing, kind
        self.made: weakref.WeakKeyDictionary[Any, tuple[str, int]] = weakref.WeakKeyDictionary()
        self.looks: weakref.WeakKeyDictionary[Any, set[int]] = weakref.WeakKeyDictionary()
        self.spared: weakref.WeakSet[Any] = weakref.WeakSet()

    def making(self, original: Any) -> Any:
        def __init__(wrapper: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
            original(wrapper, *args, **kwargs)
            self.made[wrapper] = self.job.caller()
            if self.by_library(wrapper):
                self.spared.add(wrapper)

        return __init__

    def by_library(self, wrapper: Any) -> bool:
        """Whether a framework makes it, which searches since it cannot know what models it is given."""
        frame: Any = sys._getframe(2)
        while frame is not None and frame.f_locals.get("wrapper", frame.f_locals.get("self")) is wrapper:
            frame = frame.f_back
        while frame is not None and "torchtriage" in str(frame.f_globals.get("__name__")):
            frame = frame.f_back
        return frame is not None and self.job.path_of(frame.f_code) is None

    def destroying(self, original: Any) -> Any:
        def destroy_process_group(*args: Any, **kwargs: Any) -> Any:
            self.ending()
            return original(*args, **kwargs)

        return destroy_process_group

    def iterated(self, step: int) -> None:
        if step < _LOOKS:
            for wrapper in list(self.made):
                self.look(wrapper)
        if step in _TOLD:
            for wrapper in list(self.made):
                event = self.event(wrapper)
                if not step:
                    event.names = _names(wrapper)
                self.job.record(event)
        if step == _LOOKS and not any(_told(wrapper).get("find_unused_parameters") for wrapper in list(self.made)):
            self.job.withdraw(self.probe)

    def look(self, wrapper: Any) -> dict[str, Any]:
        told = _told(wrapper)
        self.looks.setdefault(wrapper, set()).update({told.get("iteration") or 0} - {0})
        if told.get("unused_parameter_size"):
            self.spared.add(wrapper)
        return told

    def event(self, wrapper: Any) -> Wrapper:
        told, (path, line) = self.look(wrapper), self.made[wrapper]
        buckets = str(told.get("rebuilt_bucket_sizes") or told.get("bucket_sizes") or "")
        return Wrapper(
            name=type(wrapper.module).__name__,
            path=path,
            line=line,
            world=told.get("world_size"),
            buckets=[int(each) for each in buckets.split(",") if each.strip().isdigit()],
            looks=len(self.looks[wrapper]),
            spared=wrapper in self.spared,
            searches=told.get("find_unused_parameters"),
            unused=told.get("unused_parameter_size"),
            passes=told.get("iteration"),
            size=told.get("total_parameter_size_bytes"),
            cap=told.get("bucket_cap_bytes"),
            hook=told.get("comm_hook"),
        )

    def ending(self) -> None:
        for wrapper in list(self.made):
            self.job.record(self.event(wrapper))


def _told(wrapper: Any) -> dict[str, Any]:
    """What the wrapper notes for torch's own use: names and plain values."""
    return dict(wrapper._get_ddp_logging_data())


def _names(wrapper: Any) -> list[str]:
    """Of the parameters that learn, in the order in which errors number them."""
    names = (name for name, each in wrapper.module.named_parameters() if each.requires_grad)
    return [name for name, _ in zip(names, range(_NAMES), strict=False)]

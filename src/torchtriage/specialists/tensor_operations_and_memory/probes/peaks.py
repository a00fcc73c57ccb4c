"""What a run writes down about the most memory that was in use, and who held it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import replace

from .census import Census, count_holders, gradients_of, parameters_of
from .events import MemoryPeak
from .exhaustion import Exhaustion

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_RISE = 1.01  # times the peak that was written down is worth another line, after the first steps
_PEAKS = 64  # that are written down
_EARLY = 4  # steps in which it is counted who holds what before a forward pass: later ones are taken to be alike
_FAILURES = "tensor_operations_and_memory/out of memory"


def peaks(job: Job) -> None:
    """In which phase the peak of the device's memory rose, with the gradients that were there; and each allocation that
    failed.
    """
    job.sampled()
    watch = Peaks(job)
    job.listen(watch.forward, watch.asided, watch.backward, watch.backwarded, watch.stepping, watch.stepped)
    job.listen(watch.iterated, watch.watching, watch.failed, watch.ending)
    job.place(_FAILURES, Exhaustion(job, watch).place)


class Peaks:
    """The allocator counts the peak itself: whenever a phase ends, it is asked whether that has risen in it.

    phase: that is under way. others: bytes without a holder as the latest forward pass began, but for what that was
    given. held: those with one, then. filled: bytes of the gradients that are there in a backward pass, of which the
    leaves tell one by one as long as the peak is rising: in its course activations go as gradients come. steady: the
    most that was in use at any look after the first step.
    """

    def __init__(self, job: Job) -> None:
        self.job, self.probe = job, job.placing
        self.phase, self.peak = "other", 0
        self.held: int | None = None
        self.others = self.filled = self.steady = self.written = self.lines = 0
        self.event: MemoryPeak | None = None
        self.hooks: list[Any] = []
        self.is_rising, self.has_risen = True, False

    def forward(self, module: Any, args: Any, kwargs: Any) -> None:
        memory = self.end_phase("forward" if self.job.learning and module.training else "evaluation")
        if memory and self.phase == "forward":
            if self.held is None or self.job.step < _EARLY:
                self.held = sum(count_holders(self.job).values())
            given = Census(self.job).count(each for each in (*args, *kwargs.values()) if _is_whole(each))
            self.others = max(memory["allocated"] - self.held - given, 0)

    def asided(self, _module: Any, _output: Any) -> None:
        if self.phase == "evaluation":
            self.end_phase("other")

    def backward(self, _roots: Any) -> None:
        memory = self.end_phase("backward")
        if memory and self.is_rising and not _are_backward_passes_compiled():
            self.follow()

    def backwarded(self, _roots: Any) -> None:
        self.unhook()
        self.end_phase("other")

    def stepping(self, _optimizer: Any) -> None:
        self.phase = "optimizer"  # what happens between the two allocates little

    def stepped(self, _optimizer: Any) -> None:
        self.end_phase("other")

    def failed(self, _phase: str, _error: BaseException) -> None:
        self.unhook()
        self.end_phase("other")

    def watching(self) -> None:
        """Nobody knows in which phase it has risen meanwhile."""
        self.phase = "other"

    def iterated(self, step: int) -> None:
        self.is_rising = self.has_risen or step == 0
        self.has_risen = False
        if self.event is not None:
            rise = self.event.bytes / max(self.written, 1)
            if rise > _RISE or (rise > 1 and step < _EARLY) or step == _EARLY:
                self.write(self.event)
        if step >= _EARLY and self.event is None:  # no device is in use, or it does not count its peak
            self.job.withdraw(self.probe)

    def ending(self) -> None:
        self.unhook()
        if self.event is not None and self.event.bytes > self.written:
            self.write(self.event)

    def write(self, event: MemoryPeak) -> None:
        if self.lines < _PEAKS:
            self.lines, self.written = self.lines + 1, event.bytes
            self.job.record(replace(event, steady=self.steady))

    def end_phase(self, following: str) -> dict[str, int]:
        """The device's memory as one phase ends and the FOLLOWING begins; nothing where it counts no peak."""
        memory = self.look() if self.job.accelerator.kind else {}
        self.phase = following
        return memory

    def look(self, gradients: int | None = None) -> dict[str, int]:
        """Asks for the peak; GRADIENTS: bytes of them, where they are known."""
        memory = self.job.accelerator.memory()
        if "peak" not in memory:
            return {}
        if self.job.step:
            self.steady = max(self.steady, memory["allocated"])
        if memory["peak"] > self.peak:
            if memory["peak"] > _RISE * self.peak:
                self.is_rising = self.has_risen = True
            self.peak = memory["peak"]
            self.event = self.describe(gradients)
        return memory

    def describe(self, gradients: int | None) -> MemoryPeak:
        """The peak, in the phase that is under way."""
        before = self.event
        if gradients is None and before is not None and self.job.step > _EARLY and not self.has_risen:
            gradients = before.gradients
        if gradients is None:
            gradients = Census(self.job).count(gradients_of(parameters_of(self.job)))
        capacity = before.capacity if before is not None else self.job.accelerator.space().get("capacity")
        return MemoryPeak(
            at=self.job.step, phase=self.phase, bytes=self.peak, gradients=gradients, others=self.others,
            capacity=capacity,
        )  # fmt: skip

    def follow(self) -> None:
        """Is told of each gradient of this backward pass as it comes."""
        self.unhook()
        leaves = {id(each): each for each in parameters_of(self.job) if each.is_leaf and each.requires_grad}
        census = Census(self.job)
        self.filled = census.count(gradients_of(leaves.values()))

        def accumulate(parameter: Any) -> None:
            self.filled += census.count((parameter.grad,))
            self.look(self.filled)

        self.hooks = [each.register_post_accumulate_grad_hook(accumulate) for each in leaves.values()]

    def unhook(self) -> None:
        for each in self.hooks:
            each.remove()
        self.hooks = []


def _is_whole(value: Any) -> bool:
    """Whether VALUE is a tensor with memory of its own: a slice of a data set that lies on the device has not."""
    nbytes = getattr(value, "nbytes", None)
    return isinstance(nbytes, int) and value.untyped_storage().nbytes() <= 2 * nbytes


def _are_backward_passes_compiled() -> bool:
    """Compiled, they would take a hook for a part of them."""
    module = sys.modules.get("torch._dynamo.compiled_autograd")
    return bool(getattr(module, "compiled_autograd_enabled", False))

"""What a run writes down so that the replicas of different ranks can be held against each other: looks at the bits.

A look is taken after the same turns of the same optimizer on every rank, chosen by their number alone: the first four,
then the powers of two and what lies halfway between them, from 1024 on every 1024th.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import Look

from . import _bits, _carried, _tracked, _written
from .events import WeightsLoaded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torchtriage.examine.run.job.job import Job

RARE = 1024  # turns between two looks, later
SETTINGS = ("lr", "weight_decay", "momentum", "betas", "eps")
_STATES = frozenset({1, 8, 64, 512})  # turns after which the optimizer's state is looked at too
_ALONE = 16  # turns without a process group, after which nobody looks any more


def due(turn: int) -> bool:
    """Whether a look is taken after that TURN, from 1."""
    if turn > RARE:
        return turn % RARE == 0
    return turn < 4 or not turn & (turn - 1) or (turn % 3 == 0 and not turn // 3 & (turn // 3 - 1))


def divergence(job: Job) -> None:
    """Sums of the bits of what each optimizer moves, of gradients and states, and who wrote to it beside the step."""
    import torch

    if not torch.distributed.is_available():
        return
    from torch.nn.parallel import DistributedDataParallel

    job.continuous()
    looks = _Looks(job)
    _carried.listening[id(job)] = looks.carried.told
    job.wrap(DistributedDataParallel, "__init__", looks.making)
    job.wrap(torch.nn.Module, "load_state_dict", looks.loading)
    job.wrap(torch.optim.Optimizer, "load_state_dict", looks.restoring)
    for each in job.alive(DistributedDataParallel):
        looks.wrappers.append(_tracked.Wrapper(each, ("", 0)))
    job.listen(looks.stepped, looks.clipping, looks.ending)
    job.on("skipped", lambda optimizer, _scaler: looks.stepped(optimizer))
    job.place(looks.first, looks.beginning)
    job.place(looks.beside, looks.aside)


class _Course:
    """One optimizer. turns: so far, taken or skipped. tracked: what is compared of it, once that is known."""

    def __init__(self, optimizer: Any, number: int) -> None:
        self.optimizer, self.number = weakref.ref(optimizer), number
        self.turns = self.looked = 0
        self.tracked: _tracked.Tracked | None = None
        self.averaged = 0  # turns before which gradients were carried by the user's own collectives
        self.weights = 0  # values of weights in them
        self.clips: list[int] = []  # lines of clips since the last turn
        self.backwards = 0


class _Looks:
    def __init__(self, job: Job) -> None:
        from torch import distributed

        self.job, self.distributed, self.probe = job, distributed, job.placing
        self.first, self.beside = f"{self.probe} at first", f"{self.probe} beside"
        self.carried = _carried.Carried(job)
        self.wrappers: list[_tracked.Wrapper] = []
        self.courses: dict[int, _Course] = {}
        self.written = _written.Written(job)
        self.clipped: list[tuple[str, int]] = []
        self.clips = self.loads = 0

    def beginning(self, job: Job) -> None:
        """For the next backward pass, in whatever step it is."""
        job.continuous()
        job.listen(self.backward)

    def aside(self, job: Job) -> None:
        """Who writes to the tensors beside the optimizer, in the steps that sampled probes see."""
        job.sampled()
        job.undo(self.written.ending)
        job.listen(self.written.watching, self.written.ending)
        job.on("stepping", lambda optimizer: self.written.stepping(self.courses.get(id(optimizer))))
        job.on("stepped", lambda optimizer: self.written.stepped(self.courses.get(id(optimizer))))

    def several(self) -> bool:
        return bool(self.distributed.is_initialized() and self.distributed.get_world_size() > 1)

    def making(self, original: Any) -> Any:
        def __init__(wrapper: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
            where = self.job.caller()
            original(wrapper, *args, **kwargs)
            self.wrappers.append(_tracked.Wrapper(wrapper, where))
            self.job.withdraw(self.first)
            self.job.place(self.first, self.beginning)

        return __init__

    def loading(self, original: Any) -> Any:
        def load_state_dict(module: Any, *args: Any, **kwargs: Any) -> Any:
            if self.loads < 16 and self.several():
                owned = {id(each) for each in module.parameters()}
                wrapped = any(owned & each.parameters for each in self.wrappers)
                self.loads += 1
                path, line = self.job.caller()
                loaded = WeightsLoaded(path=path, line=line, wrapped=wrapped, state=False, turns=self.turns(owned))
                self.job.record(loaded)
            return original(module, *args, **kwargs)

        return load_state_dict

    def restoring(self, original: Any) -> Any:
        def load_state_dict(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if self.loads < 16 and self.several():
                self.loads += 1
                (path, line), turns = self.job.caller(), self.course(optimizer).turns
                self.job.record(WeightsLoaded(path=path, line=line, wrapped=False, state=True, turns=turns))
            return original(optimizer, *args, **kwargs)

        return load_state_dict

    def turns(self, owned: set[int]) -> int:
        """The updates so far of the optimizer, the last one built, that moves some of those in OWNED, by identity."""
        moving = (
            each for each in self.job.built if any(id(p) in owned for g in each.param_groups for p in g["params"])
        )
        last = next(iter([*moving][::-1]), None)
        return self.course(last).turns if last is not None else 0

    def backward(self, _roots: Any) -> None:
        """The first pass, of the job or through a new wrapper: how the replicas begin."""
        self.job.withdraw(self.first)
        if self.several():
            for optimizer in self.job.built:
                if not self.course(optimizer).turns and any(
                    each.requires_grad for group in optimizer.param_groups for each in group["params"]
                ):
                    self.look(self.course(optimizer), optimizer)

    def course(self, optimizer: Any) -> _Course:
        course = self.courses.get(id(optimizer))
        if course is None or course.optimizer() is not optimizer:
            course = self.courses[id(optimizer)] = _Course(optimizer, len(self.courses))
        return course

    def clipping(self, _call: str, _parameters: Any, _limit: Any, _norm: Any) -> None:
        self.clips += 1
        is_near = not self.courses or any(due(each.turns + 1) for each in self.courses.values())
        if len(self.clipped) < 4 and is_near:
            self.clipped.append(self.job.caller())

    def stepped(self, optimizer: Any) -> None:
        course = self.courses.get(id(optimizer)) or self.course(optimizer)
        course.turns += 1
        carried, tracked = self.carried, course.tracked
        if (carried.after or carried.within or carried.weights) and tracked is not None:
            course.averaged += 2 * sum(values for values, _ in (*carried.within, *carried.after)) >= tracked.moved
            if carried.weights:
                course.weights += carried.shifted(tracked.moving())
        if due(course.turns):
            self.turned(course, optimizer)
        carried.clear()
        if self.clipped:
            self.clipped = []

    def turned(self, course: _Course, optimizer: Any) -> None:
        if self.several():
            self.look(course, optimizer)
        elif course.turns >= _ALONE:
            self.job.withdraw(self.beside)
            self.job.withdraw(self.first)
            self.job.withdraw(self.probe)

    def look(self, course: _Course, optimizer: Any) -> None:
        tensors = self.tensors(course, optimizer)
        if tensors is None or course.tracked is None or self.job.accelerator.is_capturing():
            return
        course.looked = course.turns
        wrapper = course.tracked.wrapper
        look = Look(
            step=self.job.step,
            optimizer=course.number,
            turn=course.turns,
            key=course.tracked.key,
            writes=course.tracked.written(),
            settings=_settings(optimizer),
            clips=self.clips,
            clipped=self.clipped,
            backwards=self.job.clock.count("backwards"),
            at=self.job.caller(),
            joins=wrapper is not None and wrapper.joins,
            averaged=course.averaged,
            weights=course.weights,
            calls=self.carried.calls,
            most=self.carried.most,
        )
        if self.carried.after or self.carried.within:
            moving = {number: tensors[number] for number, kind in enumerate(course.tracked.kinds) if kind in "po"}
            among = self.carried.gradients(list(moving.values()))
            look.carried = [number for number, yes in zip(moving, among, strict=True) if yes]
            look.groups, look.asked = sorted(self.carried.groups), self.carried.asked
        states = list(_states(optimizer, tensors)) if course.turns in _STATES or not course.turns % 4096 else []
        grads = [each.grad for each in tensors if each.grad is not None and _bits.plain(each.grad)]
        self.measure(look, tensors, [each for each in grads if course.turns], states)

    def tensors(self, course: _Course, optimizer: Any) -> list[Any] | None:
        """Those that are compared; they are chosen again when some are gone."""
        found = course.tracked.alive() if course.tracked is not None else None
        if found is None:
            course.tracked = _tracked.Tracked(self.job, optimizer, self.wrappers)
            found = course.tracked.alive()
            if found is not None:
                self.job.record(course.tracked.replicas(self.job, optimizer, course.number, course.turns))
        return found

    def measure(self, look: Look, tensors: list[Any], grads: list[Any], states: list[Any]) -> None:
        """Adds up bits on the device, and writes the look as soon as the sums have arrived."""
        import torch

        values = [_bits.flat(each) for each in tensors]
        none = torch.zeros((), dtype=torch.int64, device=tensors[0].device)
        marks = [_bits.mark(each) if each is not None else none for each in values]
        sizes = [_bits.size(each).view(torch.int64) if each is not None else none for each in values]
        beside = [_together(part) for part in (grads, states) if part]
        job, number = self.job, len(tensors)

        def write(sums: list[int]) -> None:
            left = sums[2 * number :]
            look.gradients = left.pop(0) if grads else None
            look.states = left.pop(0) if states else None
            squares = torch.tensor(sums[number : 2 * number], dtype=torch.int64, device="cpu").view(torch.float64)
            look.marks, look.squares = sums[:number], squares.tolist()
            job.record(look)

        home = tensors[0].device
        job.late.read_all(torch.stack([each.to(home) for each in (*marks, *sizes, *beside)]), write)

    def ending(self) -> None:
        """How they end, on a CPU and where they are still there: no device is waited for."""
        for course in self.courses.values():
            optimizer, tracked = course.optimizer(), course.tracked
            if optimizer is None or tracked is None or course.turns == course.looked:
                continue
            tensors = tracked.alive()
            if tensors is not None and all(each.device.type == "cpu" for each in tensors):
                self.look(course, optimizer)


def _together(tensors: list[Any]) -> Any:
    import torch

    flat = [each for each in map(_bits.flat, tensors) if each is not None]
    home = tensors[0].device
    marks = [_bits.mark(each).to(home) for each in flat]
    return torch.stack(marks).sum() if marks else torch.zeros((), dtype=torch.int64, device=home)


def _states(optimizer: Any, tensors: list[Any]) -> Iterator[Any]:
    """What torch's own optimizers keep of each of TENSORS; those that divide it among the ranks are passed over."""
    if type(optimizer).__module__.startswith("torch.optim"):
        for each in tensors:
            for name, kept in sorted(optimizer.state.get(each, {}).items()):
                if name != "step" and getattr(kept, "shape", None) == each.shape and _bits.plain(kept):
                    yield kept


def _settings(optimizer: Any) -> list[Mapping[str, float | Sequence[float]]]:
    """The numbers of its first groups that decide about a step."""
    found: list[Mapping[str, float | Sequence[float]]] = []
    for group in optimizer.param_groups[:4]:
        plain = {name: group.get(name) for name in SETTINGS}
        plain = {
            name: value.item() if hasattr(value, "item") and value.is_cpu else value for name, value in plain.items()
        }
        found.append({name: value for name, value in plain.items() if _number(value)})
    return found


def _number(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(_number(each) for each in value)
    return isinstance(value, (int, float))

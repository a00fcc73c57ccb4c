"""What a run writes down about modules and tensors that get gradients and are no part of the model."""

from __future__ import annotations

import weakref
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from .events import Unregistered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchtriage.examine.run.job.job import Job

_LOOKS = frozenset({1, 3, 20})  # steps after which the attributes of all modules are looked through
_TOLD = frozenset({20, 200, 2000})  # steps with gradients when it is written down again
_COMPARED = frozenset({2, 5, 10, *_TOLD})  # such steps at which their numbers are compared with those of the start
_DEEP, _WIDE = 3, 256  # containers within containers, and entries of each
_VALUES = 64  # numbers of a tensor that are compared, to see whether anybody moves it
_INNER = "module_design_patterns/holding within"


def holding(job: Job) -> None:
    """Attributes of modules, outside of all registers, whose tensors get gradients that no optimizer uses."""
    job.spaced()
    watch = _Holding(job)
    job.listen(watch.iterated, watch.ending)


class _Held:
    """One attribute, and the tensors in it that may learn."""

    def __init__(self, job: Job, owner: Any, name: str, kind: str, tensors: list[Any]) -> None:
        module = job.module_name(owner)
        path, line = job.written.assigned(type(owner), name.partition(".")[0])
        self.event = Unregistered(
            what=kind,
            filled=0,
            tensors=len(tensors),
            size=sum(each.numel() for each in tensors),
            path=path,
            line=line,
            module=f"{module}.{name}" if module and module != type(owner).__name__ else name,
            container=f"{type(owner).__name__}.{name}",
        )
        self.tensors = [weakref.ref(each) for each in tensors]
        self.start = [_numbers(each) for each in tensors]
        self.used = False  # by an optimizer, by hand, or as what a derivative is taken of

    def alive(self) -> list[Any]:
        return [tensor for kept in self.tensors if (tensor := kept()) is not None]

    def look(self) -> None:
        """After a backward pass: has it left gradients, and has anybody moved the tensors?"""
        tensors = self.alive()
        self.event.filled += any(each.grad is not None for each in tensors)
        if self.event.filled in _COMPARED and len(tensors) == len(self.start):
            self.used = self.used or any(_numbers(each) != was for each, was in zip(tensors, self.start, strict=True))


class _Holding:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.held: dict[tuple[int, str], _Held] = {}
        self.within = False

    def backwarded(self, _roots: Any) -> None:
        for held in self.held.values():
            if not held.used and held.event.filled < 2000:
                held.look()
                if held.event.filled in _TOLD:
                    self.tell(held)

    def iterated(self, step: int) -> None:
        if step not in _LOOKS:
            return
        for root in self.job.roots:
            known = {id(each) for each in root.parameters()}
            for owner in list(root.modules()):
                for name, kind, tensors in _outside(owner, known):
                    if (id(owner), name) not in self.held:
                        self.held[id(owner), name] = _Held(self.job, owner, name, kind, tensors)
        if self.held and not self.within:
            self.within = True
            self.job.place(_INNER, self.put)

    def put(self, job: Job) -> None:
        """A tensor of which somebody takes the derivative himself is an input, and not meant to learn."""
        import torch

        job.listen(self.backwarded)

        def watched(original: Any) -> Any:
            def run(*args: Any, **kwargs: Any) -> Any:
                inputs = args[4] if len(args) > 4 and isinstance(args[4], tuple) else ()
                taken = {id(each) for each in inputs}
                for held in self.held.values() if taken else ():
                    held.used = held.used or any(id(each) in taken for each in held.alive())
                return original(*args, **kwargs)

            return run

        job.wrap(torch.autograd, "_engine_run_backward", watched)

    def tell(self, held: _Held) -> None:
        optimizers = list(self.job.clock.known)
        owned = {id(p) for each in optimizers for group in each.param_groups for p in group["params"]}
        if not held.used and optimizers and not any(id(each) in owned for each in held.alive()):
            self.job.record(held.event)

    def ending(self) -> None:
        for held in self.held.values():
            self.tell(held)


def _outside(owner: Any, known: set[int]) -> Iterator[tuple[str, str, list[Any]]]:
    """Name, kind and tensors of what hangs on a module, may learn, and is in none of its registers."""
    import torch

    registers = vars(torch.nn.Module())
    for name, value in _attributes({each: vars(owner)[each] for each in vars(owner) if each not in registers}):
        if isinstance(value, (list, tuple, dict)):
            found = [each for each in _learning(value, 0) if id(each) not in known]
            modules = any(isinstance(each, torch.nn.Parameter) for each in found)
            if found and (len(value) > 1 or not modules):  # one alone in a list is kept outside on purpose
                yield name, "modules" if modules else "tensor", found
        elif type(value) is torch.Tensor and value.is_leaf and value.requires_grad and id(value) not in known:
            yield name, "tensor", [value]


def _attributes(own: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Attributes with their names, and the containers that an object of a class of one's own among them has."""
    import torch

    for name, value in own.items():
        yield name, value
        inner = getattr(value, "__dict__", None)
        if type(inner) is dict and not isinstance(value, (torch.nn.Module, torch.Tensor, ModuleType, FunctionType)):
            containers = [(each, held) for each, held in inner.items() if isinstance(held, (list, tuple, dict))]
            yield from ((f"{name}.{each}", held) for each, held in containers[:_WIDE])


def _learning(value: Any, depth: int) -> Iterator[Any]:
    """The tensors in a container, and those of the modules in it, that may learn."""
    import torch

    for each in list(value.values() if isinstance(value, dict) else value)[:_WIDE]:
        if isinstance(each, torch.nn.Module):
            yield from (own for own in each.parameters() if own.requires_grad)
        elif isinstance(each, torch.Tensor):
            if each.is_leaf and each.requires_grad:
                yield each
        elif isinstance(each, (list, tuple, dict)) and depth < _DEEP:
            yield from _learning(each, depth + 1)


def _numbers(tensor: Any) -> list[float]:
    """Its version, and some of the numbers of a tensor on the CPU: elsewhere they would have to be waited for."""
    if tensor.device.type != "cpu" or not tensor.numel():
        return [tensor._version]
    flat = tensor.detach().reshape(-1)
    return [tensor._version, *flat[:: max(flat.numel() // _VALUES, 1)].tolist()]

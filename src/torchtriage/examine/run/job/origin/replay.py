"""A forward pass, kept so that it can be repeated later without leaving a trace in the job."""

from __future__ import annotations

import collections
import contextlib
import copy
import os
import random
import sys
import weakref
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..accelerator import accelerator
from .containment import is_contained
from .isolation import block_collectives, is_sharded

if TYPE_CHECKING:
    from collections.abc import Iterator

STILL = 32


class Call:
    """One forward pass of a root module, and what is needed to repeat it: inputs, autocast and, unless it is known to
    draw none, the state of random numbers.
    """

    __slots__ = ("args", "autocast", "kwargs", "module", "random", "random_device", "versions")

    def __init__(self, module: Any, args: Any, kwargs: Any, *, draws: bool = True) -> None:
        import torch

        self.module = weakref.ref(module)
        first: Any = args[0] if len(args) == 1 and not kwargs else None
        if type(first) is torch.Tensor and not first.requires_grad:
            self.args, self.kwargs = args, kwargs  # nearly always
            self.versions = [] if first.is_inference() else [first._version]
        else:
            self.args, self.kwargs = tuple(map(_detached, args)), _detached(kwargs) if kwargs else kwargs
            self.versions = self.seen_versions()
        self.random = torch.default_generator.get_state() if draws else None
        self.random_device = accelerator.random_state() if draws else None
        self.autocast = [(kind, torch.get_autocast_dtype(kind)) for kind in accelerator.autocast()]

    def drew(self) -> bool:
        """Whether random numbers have been drawn since; False where it is not known."""
        import torch

        random, device = self.random, self.random_device
        drew = random is not None and not torch.equal(random, torch.default_generator.get_state())
        return drew or (device is not None and not torch.equal(device, accelerator.random_state()))

    def seen_versions(self) -> list[int]:
        """Of the inputs that are tensors themselves; what is nested deeper is seldom changed in place."""
        given = (*self.args, *self.kwargs.values()) if self.kwargs else self.args
        return [each._version for each in given if hasattr(each, "_version") and not each.is_inference()]

    def repeatable(self) -> tuple[Any, str]:
        """The module whose forward can be called again here, or the reason why none can."""
        import torch

        module = self.module()
        if module is None:
            return None, "the module is gone"
        if type(module).__name__ == "DistributedDataParallel":
            module = module.module
        module = getattr(module, "_orig_mod", module)
        if is_sharded(module) or any("FSDP" in type(part).__name__ for part in module.modules()):
            return None, "a sharded module cannot be replayed on one rank"
        if any(isinstance(part, torch.nn.SyncBatchNorm) and part.training for part in module.modules()):
            return None, "a module with SyncBatchNorm cannot be replayed on one rank"
        if self.versions != self.seen_versions():
            return None, "the inputs were changed in place after the forward pass"
        lasting = next((name for part in module.modules() for name in _lasting(part)), "")
        return (None, f"its forward may change its own state: {lasting}") if lasting else (module, "")


class Calls(list[Call]):
    """The forward passes since the last backward: the first 16, and how many more were missed.

    draws: whether passes are taken to draw random numbers. A copy of their state is the dearest part of a pass that
    is kept; after STILL watched backward passes in a row before which none was drawn, only watched passes have one.
    """

    missed = still = 0
    draws = True

    def keep(self, module: Any, args: Any, kwargs: Any, *, watched: bool = True) -> None:
        if len(self) < 16:
            self.append(Call(module, args, kwargs, draws=self.draws or watched))
        else:
            self.missed += 1

    def watched(self) -> None:
        """The passes kept were watched ones, and their backward begins."""
        if self:
            self.still = 0 if any(call.drew() for call in self) else self.still + 1
            self.draws = self.still < STILL

    def clear(self) -> None:
        list.clear(self)
        self.missed = 0


def replaying(call: Call, module: Any, stack: list[Any], *, autocast: bool = True, cached: bool = False) -> Any:
    """A context in which MODULE computes as it did in CALL; afterwards all its state is what it was before.

    autocast: False leaves it off. cached: autocast casts each weight once, not once for each use.

    Buffers are exchanged for copies, not copied back: writing to them would bump their versions, and the
    job's own backward, which is still to come, would refuse them.
    """
    import torch

    numpy = sys.modules.get("numpy")
    parts = dict(module.named_modules())
    before = [(part, dict(part._buffers), _flags(part), _kept(part)) for part in parts.values()]
    ours = [torch.get_rng_state(), random.getstate(), numpy and numpy.random.get_state()]
    with contextlib.ExitStack() as undo:
        undo.enter_context(silent())
        undo.enter_context(block_collectives())
        undo.callback(torch.set_rng_state, ours[0])
        undo.callback(random.setstate, ours[1])
        if numpy:
            undo.callback(numpy.random.set_state, ours[2])
        undo.callback(accelerator.restore_random, accelerator.random_state())
        accelerator.restore_random(call.random_device)
        if call.random is not None:
            torch.set_rng_state(call.random)
        for part, buffers, flags, kept in before:
            undo.callback(part.__dict__.update, {**flags, **kept})
            part.__dict__.update({name: _copied(value) for name, value in kept.items()})
            undo.callback(part._buffers.update, buffers)
            part._buffers.update({name: b if b is None else b.detach().clone() for name, b in buffers.items()})
        for name, part in parts.items():
            enter = part.register_forward_pre_hook(lambda part, _, name=name: stack.append((name, part)))
            leave = part.register_forward_hook(lambda *_: stack.pop() and None, always_call=True)
            undo.callback(enter.remove)
            undo.callback(leave.remove)
        for kind, dtype in call.autocast:
            undo.enter_context(torch.autocast(kind, dtype=dtype, enabled=autocast, cache_enabled=cached))
        return undo.pop_all()


def why_not(call: Call) -> str:
    """Why CALL cannot be repeated in a healthy job without a trace; empty when it can."""
    module, why = call.repeatable()
    if module is None:
        return why
    return "" if is_contained(module) else "its code reaches more than its own modules, functions and constants"


def seconds_of(call: Call, *, autocast: bool) -> float:
    """Seconds that the module of CALL takes to compute once more, with autocast as it was or without."""
    import torch

    module, why = call.repeatable()
    if module is None:
        raise RuntimeError(why)
    with torch.enable_grad(), replaying(call, module, [], autocast=autocast, cached=True):
        began = perf_counter()
        module.forward(*call.args, **call.kwargs)
        return perf_counter() - began


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """A context in which what Python code prints goes nowhere."""
    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield


_PLAIN = (bool, int, float, str, type(None))


def _own(part: Any) -> dict[str, Any]:
    """What a module has beyond every module's parts: parameters, buffers, submodules and hooks are left out."""
    import torch

    common = vars(torch.nn.Module())
    return {name: value for name, value in vars(part).items() if name not in common}


def _kept(part: Any) -> dict[str, Any]:
    """A module's lists, dicts, sets and constant tensors, which a replay may change only in copies."""
    import torch

    kinds = (list, dict, set, collections.deque, torch.Tensor)
    return {name: value for name, value in _own(part).items() if type(value) in kinds}


def _copied(value: Any) -> Any:
    if type(value) in (list, set, tuple):
        return type(value)(_copied(item) for item in value)
    if type(value) is dict:
        return {name: _copied(item) for name, item in value.items()}
    plain_tensor = hasattr(value, "detach") and not value.requires_grad
    return value.detach().clone() if plain_tensor else copy.copy(value) if type(value) is collections.deque else value


def _lasting(part: Any) -> list[str]:
    """Names of what a forward pass may change beyond what a replay can put back."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    found = [name.strip("_") for name in hooks if getattr(part, name, None)]
    return found + [f"{name} of {type(part).__name__}" for name, value in _own(part).items() if _changeable(value)]


def _changeable(value: Any) -> bool:
    import torch

    if isinstance(value, torch.Tensor):
        return value.requires_grad or type(value) is not torch.Tensor
    if isinstance(value, (list, tuple, dict, set, collections.deque)):
        return not all(_constant(item) for item in (value.values() if isinstance(value, dict) else value))
    numbers = isinstance(value, (random.Random, torch.Generator)) or type(value).__module__.startswith("numpy.random")
    return numbers or hasattr(value, "__next__")


def _constant(item: Any) -> bool:
    """Whether an item of a container is one that nobody changes, or a container of such, which is copied."""
    import torch

    if type(item) in (list, tuple, dict, set):
        return not _changeable(item)
    return callable(item) or isinstance(item, (*_PLAIN, torch.nn.Parameter, torch.dtype, torch.device, torch.Size))


def _flags(part: Any) -> dict[str, Any]:
    """A module's plain counters and switches, which its forward may change."""
    return {name: value for name, value in vars(part).items() if type(value) in _PLAIN}


def _detached(value: Any) -> Any:
    if hasattr(value, "requires_grad"):
        return value.detach() if value.requires_grad else value
    match value:
        case tuple() if type(value) is tuple:
            return tuple(_detached(item) for item in value)
        case list():
            return [_detached(item) for item in value]
        case dict() if type(value) is dict:
            return {name: _detached(item) for name, item in value.items()}
        case _:
            return value

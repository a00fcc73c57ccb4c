"""What a training registers, each object by what it is; names are the training's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torchtriage.core.errors import TriageError
from torchtriage.toolkit.state import generators
from torchtriage.toolkit.state.loaders import Loader, Sampler
from torchtriage.toolkit.state.parts import Generator, Module, Optimizer, Part, Plain, Scheduler

ORDER = (Module, Plain, Scheduler, Optimizer, Generator, Sampler, Loader)
"""In which they are put back: a scheduler may set the rate of its optimizer, so the optimizer comes later."""
AVERAGES = ("ema", "swa", "average")


class Registered:
    """The parts by name."""

    def __init__(self, given: Mapping[str, Any]) -> None:

        self.parts: dict[str, Part] = {}
        for name, value in _flat(given):
            if name in self.parts:
                do = "Give each part a name of its own."
                raise TriageError(f"two parts are called {name}, and one would be lost", "TrainingState", do)
            self.parts[name] = self._part(name, value)
        _mark_used(self.of(Optimizer))

    def of(self, kind: type) -> dict[str, Any]:
        return {name: each for name, each in self.parts.items() if type(each) is kind}

    def ordered(self) -> Iterator[tuple[str, Part]]:
        for kind in ORDER:
            yield from self.of(kind).items()

    def loader(self, loader: Any) -> Loader:
        for each in self.of(Loader).values():
            if each.loader is loader:
                return each  # type: ignore[no-any-return]
        do = "Give it to TrainingState as well: TrainingState(folder, …, loader=loader)."
        raise TriageError("this loader is not registered, so its place would not be kept", "TrainingState", do)

    def lacking(self) -> list[str]:
        """What is missing for a resume, as far as that can be seen from what is there: a component's name, and why."""
        has = {each.component for each in self.parts.values()}
        found = [f"{name}: none is registered" for name in ("model", "optimizer") if name not in has]
        for name, each in self.of(Optimizer).items():
            if "scheduler" not in has and any("initial_lr" in group for group in each.optimizer.param_groups):
                found.append(f"scheduler: {name} has one, which is not registered")
            if "model" in has and (unnamed := each.unnamed()):
                found.append(f"model: {unnamed} parameters of {name} are in no model that is registered")
        return found

    def left_out(self) -> list[str]:
        return [f"{name}: {said}" for name, each in self.of(Scheduler).items() for said in each.left_out()]

    def waiting(self) -> bool:
        """Whether gradients are there that no optimizer has used since they were last changed."""
        found = [
            each.grad for part in self.of(Module).values() for each in part.module.parameters() if each.grad is not None
        ]
        return any(getattr(each, "_torchtriage_used", None) != _version(each) for each in found)

    def _names(self) -> dict[int, str]:
        return {
            id(each): f"{name}.{key}"
            for name, part in self.of(Module).items()
            for key, each in part.module.named_parameters()
        }

    def _part(self, name: str, value: Any) -> Part:
        import torch

        schedulers = torch.optim.lr_scheduler
        average = isinstance(value, torch.optim.swa_utils.AveragedModel) or any(word in name for word in AVERAGES)
        kinds: list[tuple[Any, Callable[[], Any]]] = [
            (torch.nn.Module, lambda: Module(_usable(name, value), self.waiting, "ema" if average else "model")),
            (torch.optim.Optimizer, lambda: Optimizer(value, self._names)),
            ((schedulers.LRScheduler, schedulers.ReduceLROnPlateau), lambda: Scheduler(value)),
            (torch.amp.GradScaler, lambda: Plain(value, "scaler")),
            (torch.utils.data.DataLoader, lambda: Loader(value)),
            (torch.utils.data.Sampler, lambda: Sampler(value)),
        ]
        for kind, made in kinds:
            if isinstance(value, kind):
                return made()  # type: ignore[no-any-return]
        if generators.is_generator(value):
            return Generator(value)
        if hasattr(value, "state_dict") and hasattr(value, "load_state_dict"):
            return Plain(value, "ema" if average else "")
        do = "Numbers and strings go to state.values; an object of your own needs state_dict and load_state_dict."
        raise TriageError(f"{name} is a {type(value).__qualname__}, which has no state_dict", "TrainingState", do)


def _flat(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Lists and dicts of parts by the names of their members; what is None is not there."""
    for name, value in given.items():
        if type(value) is dict:
            for key, each in value.items():
                yield from _flat({f"{name}.{key}": each})
        elif type(value) in (list, tuple):
            yield from _flat({f"{name}.{number}": each for number, each in enumerate(value)})
        elif value is not None:
            yield name, value


def _usable(name: str, module: Any) -> Any:
    """MODULE; raises TriageError for what keeps its parameters where a state_dict has no plain tensors."""
    kinds = {each.__qualname__ for each in type(module).__mro__}
    for kind in ("FullyShardedDataParallel", "DeepSpeedEngine"):
        if kind in kinds and not hasattr(module, "set_requires_gradient_sync"):  # FSDP2 has that
            do = "Shard with fully_shard (FSDP2), whose parameters are DTensors, or save with the tools of its own."
            raise TriageError(f"{name} is a {kind}, whose shards TrainingState does not write", "TrainingState", do)
    return module


def _version(tensor: Any) -> int:
    return int(getattr(tensor, "_local_tensor", tensor)._version)


def _mark_used(optimizers: Mapping[str, Optimizer]) -> None:
    """After each step of an optimizer its gradients bear the version that it has used."""

    def mark(optimizer: Any, *_: Any) -> None:
        for group in optimizer.param_groups:
            for each in group["params"]:
                if each.grad is not None:
                    each.grad._torchtriage_used = _version(each.grad)

    for part in optimizers.values():
        part.optimizer.register_step_post_hook(mark)

"""The parts of a training, each by what it is: how its state is taken, whether a saved one fits, how it is put back."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from torchtriage.core.errors import TriageError
from torchtriage.toolkit.state import generators
from torchtriage.toolkit.state.opening import Stored
from torchtriage.toolkit.state.tensors import box_of, is_sharded, type_of

_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.LambdaType)
SHOWN = 5  # differences that are told one by one


class Part(Protocol):
    """One object that the training has registered. component: what it is in the table of components, or ""."""

    component: str

    def taken(self) -> Any:
        """Its state, with the tensors that it trains on."""

    def misfits(self, saved: Any) -> list[str]:
        """Why SAVED cannot be put back, in words; nothing is changed."""
        ...

    def put_back(self, saved: Any) -> None:
        """Goes on from SAVED, which fits."""


class Plain:
    """Whatever has a state_dict and a load_state_dict: a gradient scaler, an own class of the training."""

    def __init__(self, value: Any, component: str = "") -> None:
        self.value, self.component = value, component

    def taken(self) -> Any:
        return {"type": type(self.value).__qualname__, "state": self.value.state_dict()}

    def misfits(self, saved: Any) -> list[str]:
        is_now = type(self.value).__qualname__
        if saved.get("type") != is_now:
            return [f"is a {is_now} here, and was a {saved.get('type')}"]
        if self.component == "scaler" and bool(saved["state"]) != bool(self.value.state_dict()):
            return ["is enabled here, and was not" if not saved["state"] else "was enabled, and is not here"]
        return []

    def put_back(self, saved: Any) -> None:
        self.value.load_state_dict(in_memory(saved["state"]))


class Scheduler(Plain):
    """A scheduler of the learning rate. Functions in its state are left out: its constructor makes them again."""

    def __init__(self, value: Any) -> None:
        super().__init__(value, "scheduler")

    def taken(self) -> Any:
        state = without_functions(self.value.state_dict())
        return {"type": type(self.value).__qualname__, "state": state, "inner": _inner(self.value)}

    def misfits(self, saved: Any) -> list[str]:
        found, here = super().misfits(saved), _inner(self.value)
        there = saved.get("inner", here)
        return found or ([f"is made of {_said(here)} here, and was of {_said(there)}"] if here != there else [])

    def left_out(self) -> list[str]:
        state = self.value.state_dict()
        functions = [f"{key} (a function)" for key, value in state.items() if isinstance(value, _FUNCTIONS)]
        if any(each is None for each in state.get("lr_lambdas", ())):
            functions.append("lr_lambdas (functions)")
        return functions


class Generator(Plain):
    """A generator of random numbers that the training has made itself."""

    def taken(self) -> Any:
        return {"type": type(self.value).__qualname__, "state": generators.state_of(self.value)}

    def put_back(self, saved: Any) -> None:
        generators.put_back_to(self.value, in_memory(saved["state"]))


class Module:
    """A model, or an average of one: weights, buffers, train() or eval(), what is frozen, gradients that wait.

    waiting: whether the gradients that are there are part of the state.
    """

    def __init__(self, module: Any, waiting: Callable[[], bool], component: str = "model") -> None:
        self.module, self.component = bare(module), component
        self._waiting = waiting

    def taken(self) -> Any:
        modules = [name for name, each in self.module.named_modules() if each.training]
        frozen = [name for name, each in self.module.named_parameters() if not each.requires_grad]
        found = {name: each.grad for name, each in self.module.named_parameters() if each.grad is not None}
        gradients = found if self._waiting() else {}
        return {"state": self._state(), "training": modules, "frozen": frozen, "gradients": gradients}

    def misfits(self, saved: Any) -> list[str]:
        return _differences(self._state(), saved["state"])

    def _state(self) -> dict[str, Any]:
        from torch.nn.parameter import is_lazy

        state: dict[str, Any] = self.module.state_dict()
        lazy = [key for key, each in state.items() if is_lazy(each)]
        if lazy:
            do = "Run one batch through the model before it is saved or loaded."
            raise TriageError(f"{_listed(lazy)} of a lazy module have no shape yet", "TrainingState", do)
        return state

    def put_back(self, saved: Any) -> None:
        state = {key: _like(target, saved["state"][key]) for key, target in self.module.state_dict().items()}
        self.module.load_state_dict(state, strict=True)
        training, frozen, waiting = set(saved["training"]), set(saved["frozen"]), saved["gradients"]
        for name, each in self.module.named_modules():
            each.training = name in training
        for name, each in self.module.named_parameters():
            each.requires_grad_(name not in frozen)
            each.grad = _like(each, waiting[name], copied=True) if name in waiting else None


class Optimizer:
    """An optimizer, whose state goes by the names of the parameters. names: of each parameter, by its id."""

    component = "optimizer"

    def __init__(self, optimizer: Any, names: Callable[[], Mapping[int, str]]) -> None:
        self.optimizer, self._names = optimizer, names

    def taken(self) -> Any:
        state, groups = self.optimizer.state_dict(), self._groups()
        by_number = dict(zip(_flat([each["params"] for each in state["param_groups"]]), _flat(groups), strict=True))
        return {
            "type": type(self.optimizer).__qualname__,
            "state": {by_number.get(key, key): value for key, value in state["state"].items()},
            "groups": [{**group, "params": names} for group, names in zip(state["param_groups"], groups, strict=True)],
            "beside": {key: each for key, each in state.items() if key not in ("state", "param_groups")},
        }

    def misfits(self, saved: Any) -> list[str]:
        is_now, groups = type(self.optimizer).__qualname__, self._groups()
        if saved.get("type") != is_now:
            return [f"is a {is_now} here, and was a {saved.get('type')}"]
        if len(groups) != len(saved["groups"]):
            return [f"has {len(groups)} groups of parameters here, and had {len(saved['groups'])}"]
        found = []
        for number, (here, there) in enumerate(zip(groups, saved["groups"], strict=True)):
            new, gone = set(here) - set(there["params"]), set(there["params"]) - set(here)
            found += [
                f"group {number} {said} {_listed(names)}" for said, names in (("has now", new), ("had", gone)) if names
            ]
        return found

    def put_back(self, saved: Any) -> None:
        import torch

        groups = self._groups()
        numbers = {name: number for number, name in enumerate(_flat(groups))}
        parameters = dict(
            zip(_flat(groups), _flat([each["params"] for each in self.optimizer.param_groups]), strict=True)
        )
        state = {
            name: _like_parameter(parameters[name], value) if name in parameters else in_memory(value)
            for name, value in saved["state"].items()
        }
        held = [
            {**in_memory(there), "params": [numbers[name] for name in here]}
            for here, there in zip(groups, saved["groups"], strict=True)
        ]
        for here, group in zip(self.optimizer.param_groups, held, strict=True):
            if "param_names" in here:
                group["param_names"] = here["param_names"]
        by_number = {numbers.get(name, name): value for name, value in state.items()}
        beside = in_memory(saved.get("beside", {}))
        self.optimizer.load_state_dict({"state": by_number, "param_groups": held, **beside})
        for name, value in state.items():  # load_state_dict casts to the type of the parameter
            for key, exact in value.items() if name in parameters and isinstance(value, dict) else ():
                got = self.optimizer.state[parameters[name]][key]
                if isinstance(exact, torch.Tensor) and got.dtype != exact.dtype:
                    self.optimizer.state[parameters[name]][key] = exact.to(got.device)

    def _groups(self) -> list[list[str]]:
        """The names of the parameters of each group; by their place where no registered model has them."""
        names = self._names()
        return [
            [names.get(id(each), f"parameter {n} of group {number}") for n, each in enumerate(group["params"])]
            for number, group in enumerate(self.optimizer.param_groups)
        ]

    def unnamed(self) -> int:
        """How many of its parameters are in no registered model."""
        names = self._names()
        return sum(id(each) not in names for group in self.optimizer.param_groups for each in group["params"])


def _inner(scheduler: Any) -> list[str]:
    """The types of what a scheduler is made of: SequentialLR and ChainedScheduler hold others."""
    held = getattr(scheduler, "_schedulers", ())
    return [name for each in held for name in (type(each).__qualname__, *_inner(each))]


def _said(names: list[str]) -> str:
    return ", ".join(names) or "none"


def bare(module: Any) -> Any:
    """MODULE without what wraps it: its names are those that it has without."""
    import torch

    wrappers = (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)
    while True:
        if isinstance(module, wrappers):
            module = module.module
        elif hasattr(module, "_orig_mod"):
            module = module._orig_mod
        else:
            return module


def in_memory(tree: Any) -> Any:
    """TREE with tensors of their own in the place of stored ones."""
    if isinstance(tree, Stored):
        return tree.tensor()
    if isinstance(tree, dict):
        return {key: in_memory(each) for key, each in tree.items()}
    if type(tree) in (list, tuple):
        return type(tree)(in_memory(each) for each in tree)
    return tree


def without_functions(state: Any) -> Any:
    if isinstance(state, dict):
        return {key: without_functions(each) for key, each in state.items() if not isinstance(each, _FUNCTIONS)}
    if isinstance(state, list):
        return [None if isinstance(each, _FUNCTIONS) else without_functions(each) for each in state]
    return state


def _differences(here: Mapping[str, Any], there: Mapping[str, Any]) -> list[str]:
    """What keeps THERE from being put into HERE: names, shapes and types, each told once."""
    missing, unknown = [key for key in here if key not in there], [key for key in there if key not in here]
    found = [f"{said} {_listed(names)}" for said, names in (("has now", missing), ("had", unknown)) if names]
    told = [
        f"{key} is {type_of(value)} {list(value.shape)} here, and was {there[key].dtype} {list(there[key].shape)}"
        for key, value in here.items()
        if isinstance(there.get(key), Stored)
        and (tuple(value.shape) != there[key].shape or type_of(value) != there[key].dtype)
    ]
    return found + told[:SHOWN] + ([f"{len(told) - SHOWN} more tensors differ"] if len(told) > SHOWN else [])


def _listed(names: Any) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - SHOWN} more" if len(ordered) > SHOWN else ""
    return ", ".join(ordered[:SHOWN]) + more


def _like(target: Any, saved: Any, *, copied: bool = False) -> Any:
    """SAVED as a tensor that can be put into TARGET: of a sharded one, this rank's part."""
    if not isinstance(saved, Stored):
        return in_memory(saved)  # an extra state may hold tensors
    if is_sharded(target):
        return _sharded(target, saved)
    return saved.tensor().to(target.device) if copied else saved.view()


def _sharded(target: Any, saved: Stored) -> Any:
    from torch.distributed.tensor import DTensor

    local = saved.box(*box_of(target)).clone().to(target.to_local().device)
    placed = {"shape": target.shape, "stride": target.stride(), "run_check": False}
    return DTensor.from_local(local, target.device_mesh, target.placements, **placed)


def _like_parameter(parameter: Any, value: Any) -> Any:
    """What an optimizer holds for PARAMETER: what has its shape is sharded as it is."""
    if isinstance(value, Stored):
        alike = is_sharded(parameter) and tuple(parameter.shape) == value.shape
        return _sharded(parameter, value) if alike else value.tensor()
    if isinstance(value, dict):
        return {key: _like_parameter(parameter, each) for key, each in value.items()}
    return in_memory(value)


def _flat(lists: list[list[Any]]) -> list[Any]:
    return [each for inner in lists for each in inner]

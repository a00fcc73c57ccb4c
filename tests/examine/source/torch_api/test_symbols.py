"""The names that are no operators: each is one of the installed torch, and is what its group says."""

from __future__ import annotations

import importlib
import inspect
from contextlib import suppress

import pytest
import torch
from msgspec.structs import asdict

from torchtriage.examine.source.names import table
from torchtriage.examine.source.torch_api.symbols import Argument, symbols

QUALIFIED = sorted({name for names in asdict(symbols()).values() for name in names if name.startswith("torch.")})
LAYERS = (
    "registering_containers",
    "stateless_layers",
    "batch_norms",
    "dropout_layers",
)


def thing(name: str) -> object:
    """What NAME stands for, under one of the names that the engine takes for it."""
    for each in (name, *(old for old, new in table()["moved"].items() if new == name)):
        home, _, word = each.rpartition(".")
        with suppress(AttributeError, ModuleNotFoundError):
            return getattr(importlib.import_module(home), word)
    home, _, word = name.rpartition(".")
    return getattr(thing(home), word)


@pytest.mark.parametrize("name", QUALIFIED)
def test_a_whole_name_is_one_of_torch(name: str) -> None:
    assert thing(name) is not None


@pytest.mark.parametrize("name", sorted({name for group in LAYERS for name in getattr(symbols(), group)}))
def test_a_layer_is_one_of_torch(name: str) -> None:
    assert issubclass(getattr(torch.nn, name), torch.nn.Module)


@pytest.mark.parametrize("name", sorted(symbols().stateless_layers - {"Identity"}))
def test_a_layer_without_state_is_none_that_normalizes(name: str) -> None:
    assert name not in symbols().batch_norms


@pytest.mark.parametrize(("name", "dtype"), symbols().dtypes.items())
def test_a_dtype_has_the_name_that_torch_prints(name: str, dtype: str) -> None:
    assert str(thing(name)) == f"torch.{dtype}"


@pytest.mark.parametrize(("name", "dtype"), symbols().tensor_classes.items())
def test_a_class_makes_tensors_of_its_dtype(name: str, dtype: str) -> None:
    made = torch.Tensor(1) if name == "torch.Tensor" else torch.empty(1).type(name)
    assert str(made.dtype).removeprefix("torch.") == ("float32" if dtype == "default" else dtype)


@pytest.mark.parametrize("name", sorted(symbols().module_self - {"cuda", "xpu", "apply", "type", "to_empty"}))
def test_a_method_gives_the_module_itself(name: str) -> None:
    layer = torch.nn.Linear(1, 1)
    assert getattr(layer, name)() is layer


@pytest.mark.parametrize("name", sorted(symbols().tensor_methods | symbols().shared_methods))
def test_a_method_is_one_of_tensors(name: str) -> None:
    assert callable(getattr(torch.Tensor, name))


def optimizer() -> torch.optim.Optimizer:
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)


ARGUMENTS = {
    "StepLR": {"step_size": 2},
    "MultiStepLR": {"milestones": [2, 4]},
    "ExponentialLR": {"gamma": 0.9},
    "CosineAnnealingLR": {"T_max": 8},
    "PolynomialLR": {"total_iters": 8},
    "ReduceLROnPlateau": {"patience": 1},
}


@pytest.mark.parametrize("name", sorted(symbols().falling_schedules))
def test_a_falling_schedule_has_no_rate_above_its_first(name: str) -> None:
    stepped = optimizer()
    schedule = getattr(torch.optim.lr_scheduler, name)(stepped, **ARGUMENTS[name])
    rates = [stepped.param_groups[0]["lr"]]
    for _ in range(8):
        stepped.step()
        schedule.step(*([1.0] if name == "ReduceLROnPlateau" else []))
        rates.append(stepped.param_groups[0]["lr"])
    assert rates[0] == max(rates) == 1.0
    assert rates[-1] < 1.0


@pytest.mark.parametrize(("name", "argument"), symbols().schedule_lengths.items())
def test_the_length_of_a_schedule_stands_at_its_place(name: str, argument: Argument) -> None:
    wanted = inspect.signature(getattr(torch.optim.lr_scheduler, name)).parameters
    assert [*wanted][argument.place] == argument.name


def test_everything_is_read_once() -> None:
    assert symbols() is symbols()

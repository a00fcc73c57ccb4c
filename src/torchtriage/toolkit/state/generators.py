"""Random numbers: the states of all generators that a training draws from, taken and put back."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from typing import Any

DEVICES = ("cuda", "xpu", "mps", "mtia", "hpu", "npu")


def taken() -> dict[str, Any]:
    """The states of Python, NumPy, torch and every device that is in use. Nothing is drawn."""
    return {**on_host(), "devices": {name: _device_states(each) for name, each in _devices()}}


def on_host() -> dict[str, Any]:
    """The states that a loader draws from in its own process."""
    import torch

    numpy = sys.modules.get("numpy")
    made: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    return made | {"numpy": numpy.random.get_state()} if numpy is not None else made


def put_back(states: dict[str, Any]) -> list[str]:
    """Puts back what `taken` or `on_host` gave; says which states found no place."""
    import torch

    random.setstate(states["python"])
    torch.set_rng_state(states["torch"])
    if "numpy" in states:
        import numpy as np

        np.random.set_state(states["numpy"])
    there = dict(_devices(ready=False))
    lost = []
    for name, saved in states.get("devices", {}).items():
        count = _count(there[name]) if name in there else 0
        for index, each in enumerate(saved[:count]):
            there[name].set_rng_state(each, *_which(there[name], index))
        if count < len(saved):
            lost.append(f"{len(saved) - count} generators of {name} devices: there are {count} here")
    return lost


def states_of(generators: Iterable[Any]) -> list[Any]:
    return [state_of(each) for each in generators]


def is_generator(value: Any) -> bool:
    torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
    kinds = (torch.Generator, random.Random)
    return isinstance(value, kinds) or (
        numpy is not None and isinstance(value, (numpy.random.Generator, numpy.random.RandomState))
    )


def state_of(generator: Any) -> Any:
    """The state of one generator that the training has made itself: torch's, NumPy's or Python's."""
    if isinstance(generator, random.Random):
        return generator.getstate()
    if hasattr(generator, "bit_generator"):
        return generator.bit_generator.state
    return generator.get_state()


def put_back_to(generator: Any, state: Any) -> None:
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif hasattr(generator, "bit_generator"):
        generator.bit_generator.state = state
    else:
        generator.set_state(state)


def _devices(*, ready: bool = True) -> list[tuple[str, Any]]:
    """The kinds of device of this torch; READY: only those that the training has used."""
    import torch

    found = [(name, getattr(torch, name, None)) for name in DEVICES]
    return [
        (name, each)
        for name, each in found
        if each is not None and hasattr(each, "set_rng_state") and _count(each) and (not ready or _used(each))
    ]


def _used(device: Any) -> bool:
    told = getattr(device, "is_initialized", None)
    return bool(told()) if told is not None else True


def _count(device: Any) -> int:
    told = getattr(device, "is_available", None)
    if told is not None and not told():
        return 0
    return int(device.device_count()) if hasattr(device, "device_count") else 1


def _device_states(device: Any) -> list[Any]:
    return [device.get_rng_state(*_which(device, index)) for index in range(_count(device))]


def _which(device: Any, index: int) -> tuple[int, ...]:
    """MPS is one device, whose functions take no index."""
    return () if device.__name__.endswith("mps") else (index,)

"""Functions of torch that take a device by its name get the device itself."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

_CUDA = re.compile(r"cuda(?::\d+)?")
_BY_HAND = ("asarray", "to", "new_tensor", "new", "as_tensor", "tensor", "nested_tensor")
"""Parsed by torch without a schema of theirs."""


def map_names(torch: Any) -> None:
    """Wraps whatever torch's schemas say to take a device, where it is a function of torch or a method of a tensor."""
    import torch.utils._device as defaults

    defaults._device_constructors()  # remembers the originals, which are what a mode of torch's is given
    known = {*_BY_HAND, *_taking_a_device(torch)}
    for name in sorted(known):
        for owner in (torch, torch.Tensor, torch.nested):
            _wrap(owner, name, torch)
    for name in ("fftfreq", "rfftfreq"):
        _wrap(torch.fft, name, torch)
    _wrap(torch._C._nn, "_parse_to", torch)
    for name in ("Generator", "Stream", "Event"):
        setattr(torch, name, _constructor(getattr(torch, name), torch))


def _taking_a_device(torch: Any) -> Iterator[str]:
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if (
            space == "aten"
            and not name.startswith("_")
            and any("Device" in str(each.type) for each in schema.arguments)
        ):
            yield name


def _wrap(owner: Any, name: str, torch: Any) -> None:
    original = getattr(owner, name, None)
    if callable(original) and not isinstance(original, type):
        replacement = with_devices(original, torch)
        setattr(owner, name, replacement)
        if (operator := torch.jit._builtins._find_builtin(original)) is not None:  # TorchScript knows them by identity
            torch.jit._builtins._register_builtin(replacement, operator)


def with_devices(original: Callable[..., Any], torch: Any) -> Callable[..., Any]:
    """ORIGINAL, given devices for their names, by position or as `device`."""
    make = torch.device

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        for each in args:
            if type(each) is str:
                args = tuple(make(one) if is_cuda(one) else one for one in args)
                break
        if is_cuda(device := kwargs.get("device")):
            kwargs["device"] = make(device)
        return original(*args, **kwargs)

    return call


def is_cuda(name: object) -> bool:
    """Whether NAME is one of a CUDA device, with an index or without."""
    return isinstance(name, str) and _CUDA.fullmatch(name) is not None


def _constructor(original: type, torch: Any) -> type:
    """A class that makes objects of ORIGINAL, which cannot be derived from, and recognises them."""
    make = with_devices(original, torch)

    class Meta(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, original)

        def __subclasscheck__(cls, derived: type) -> bool:
            return issubclass(derived, original)

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return make(*args, **kwargs)

    return Meta(original.__name__, (), {"__doc__": original.__doc__, "__module__": original.__module__})

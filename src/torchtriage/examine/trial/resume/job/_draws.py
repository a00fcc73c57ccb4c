"""The generators of random numbers that every process has, and those that a training makes itself."""

from __future__ import annotations

import random
import sys
from typing import Any

from . import _raw

OF_NUMPY = ("Generator", "RandomState", "MT19937", "PCG64", "Philox", "SFC64")


def states() -> dict[str, bytes]:
    """The states of torch's generators, Python's and numpy's, as far as these are there."""
    import torch

    found = {
        "rng-torch": _raw.raw(torch.get_rng_state()),
        "rng-python": repr(random.getstate()).encode(),
    }
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        found["rng-numpy"] = told(numpy.get_state())
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found["rng-device"] = b"".join(_raw.raw(each) for each in torch.cuda.get_rng_state_all())
    return found


def marks() -> dict[str, str]:
    return {name: _raw.mark(state) for name, state in states().items()}


def is_generator(value: Any) -> bool:
    import torch

    kind = type(value)
    named = (kind.__module__ or "").startswith("numpy.random") and kind.__name__ in OF_NUMPY
    return isinstance(value, (torch.Generator, random.Random)) or named


def state_of(value: Any) -> bytes:
    """The state of a generator that the training has made."""
    import torch

    if isinstance(value, torch.Generator):
        return _raw.raw(value.get_state())
    if isinstance(value, random.Random):
        return repr(value.getstate()).encode()
    inner = getattr(value, "bit_generator", value)
    return told(inner.get_state() if hasattr(inner, "get_state") else inner.state)


def told(state: Any) -> bytes:
    """A state of numpy's: arrays in full, which repr would shorten."""
    if isinstance(state, dict):
        return b"".join(str(key).encode() + told(each) for key, each in sorted(state.items()))
    if isinstance(state, (tuple, list)):
        return b"".join(told(each) for each in state)
    return bytes(state.tobytes()) if hasattr(state, "tobytes") else repr(state).encode()

"""Lets a script that says "cuda" run on the simulated device.

Three things are replaced, before the script has begun. `torch.device` makes the simulated device of the name "cuda",
and the device calls itself so: comparisons such as `device.type == "cuda"` hold. Functions of torch that take a device
as a string get it as a `torch.device`; which those are, torch's own operator schemas tell. `torch.cuda` offers what the
simulated device has. A name that reaches torch in another way is an error, never quietly the CPU.
"""

from __future__ import annotations

from typing import Any

from . import backends, module, names, parallel, tensors
from .absent import Absences


def map_cuda(native: Any, absences: Absences, properties: Any) -> None:
    """For the rest of this process; PROPERTIES are those of a simulated card, as `get_device_properties` gives them."""
    import torch

    native.present_as_cuda()
    module.map_module(torch, native, absences, properties)
    names.map_names(torch)
    tensors.map_tensors(torch)
    parallel.map_parallel(torch)
    backends.map_backends(torch, absences)

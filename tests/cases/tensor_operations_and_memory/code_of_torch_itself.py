"""Classes of torch's own tools are no tensors, whatever their methods are called."""

import torch
from torch._export.passes.lift_constants_pass import ConstantAttrMap


def collect(module: torch.nn.Module, constants: dict) -> ConstantAttrMap:
    found = ConstantAttrMap()
    for name, value in constants.items():
        setattr(module, name, value)
        found.add(value, name)
    return found

"""The bits of tensors as numbers, so that ranks can compare them without a collective.

The sum of a tensor's bits, read as whole numbers of eight bytes and taken modulo 2**64, is the same on every rank that
has the same values, however many threads or cards add it up, and costs one look at the memory. torch.hash_tensor takes
the exclusive or instead, which makes of any even number of equal values (weights of a fresh normalisation) a 0.
"""

from __future__ import annotations

from typing import Any

COPIED = 1 << 20  # values of a tensor with gaps in it, that are copied; larger ones are left out
TAILS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}


def plain(tensor: Any) -> bool:
    """Whether TENSOR is of torch's own kind, has its values here, and can be read without asking another rank."""
    import torch

    kind = type(tensor)
    if kind is not torch.Tensor and kind is not torch.nn.Parameter:
        return False
    if tensor.layout is not torch.strided or tensor.device.type == "meta" or hasattr(tensor, "ds_id"):
        return False
    return bool(tensor.numel()) and not tensor.is_quantized and not tensor.is_conj() and not tensor.is_neg()


def flat(tensor: Any) -> Any:
    """The values of TENSOR in the order of the memory, in one dimension; None where that would copy too many."""
    tensor = tensor.detach()
    if tensor.is_contiguous():
        return tensor.view(-1)
    strides = sorted((stride, size) for size, stride in zip(tensor.size(), tensor.stride(), strict=True) if size > 1)
    expected = 1
    for stride, size in strides:
        if stride != expected:
            return tensor.reshape(-1) if tensor.numel() <= COPIED else None
        expected *= size
    return tensor.as_strided((tensor.numel(),), (1,), tensor.storage_offset())


def mark(values: Any) -> Any:
    """The sum of the bits of a flat tensor, an int64 without dimensions on its device."""
    import torch

    if values.is_complex():
        values = torch.view_as_real(values).view(-1)
    bytes_each = values.element_size()
    pack = 8 // bytes_each
    head = min(-values.storage_offset() % pack, values.numel())
    whole = (values.numel() - head) // pack * pack
    narrow = getattr(torch, TAILS[bytes_each])
    ends = [part.view(narrow).sum(dtype=torch.int64) for part in (values[:head], values[head + whole :]) if len(part)]
    if whole:
        ends.append(values[head : head + whole].view(torch.int64).sum())
    return ends[0] if len(ends) == 1 else torch.stack(ends).sum()


def size(values: Any) -> Any:
    """The sum of the squares of a flat tensor, a float64 without dimensions: how far two ranks are apart."""
    import torch

    if not values.is_floating_point():
        return torch.zeros((), dtype=torch.float64, device=values.device)
    if values.element_size() < 4:
        values = values[:COPIED].float()
    return torch.dot(values, values).double()

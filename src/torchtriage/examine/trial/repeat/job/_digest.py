"""Marks of tensors: equal bits give equal marks, and what is permuted or of the other sign gives others.

Small tensors are a CRC of their bytes. Of large ones the words of 64 bits are laid out in rows of ROW and summed, whole
and exact, along the rows and along the columns, and the CRC of the sums is the mark: three times as fast, and blind
only to exchanges that leave the sums of every row and of every column as they were. ROW is prime, so that no row of a
batch or of a matrix lies under another.
"""

from __future__ import annotations

import ctypes
import zlib
from typing import Any

ROW = 509  # words of 64 bits
SMALL = 32768  # bytes, of which a CRC costs no more than the sums: 8 microseconds at 4 GB/s
limit: float = (
    SMALL  # up to which a CRC is taken; none while operations are written down, so that marks can be followed
)
_crc = zlib.crc32


def crc(tensor: Any, start: int = 0) -> int:
    """The CRC of the bytes of a dense tensor on the CPU; no operation of torch is called."""
    size = tensor.numel() * tensor.element_size()
    return _crc((ctypes.c_char * size).from_address(tensor.data_ptr()), start) if size else start


def mark(tensor: Any) -> Any:
    """The mark of TENSOR, a whole number; of one on a device a tensor of two, to be read later; None where it has none.

    Its size is part of the mark, its layout is not: what is not contiguous is copied.
    """
    if type(tensor) not in _simple or not tensor.is_cpu or tensor.layout is not _dense or tensor.is_complex():
        return _other(tensor)
    count, size = tensor.numel(), tensor.nbytes
    if not tensor.is_contiguous() or (size > limit and (size % 8 or tensor.data_ptr() % 8)) or _modes():
        return _other(tensor)
    if size <= limit:
        return _crc((ctypes.c_char * size).from_address(tensor.data_ptr()), count & 0xFFFF) if size else 0
    words = tensor.detach().view(-1).view(_word)
    rows = (size >> 3) // ROW
    whole = words.as_strided((rows, ROW), (ROW, 1))
    done = rows * ROW * 8
    start = _crc((ctypes.c_char * (size - done)).from_address(tensor.data_ptr() + done), count & 0xFFFF)
    down, along = whole.sum(0), whole.sum(1)
    start = _crc((ctypes.c_char * (ROW * 8)).from_address(down.data_ptr()), start)
    return _crc((ctypes.c_char * (rows * 8)).from_address(along.data_ptr()), start)


_simple: frozenset[type] = frozenset()
_word: Any = None
_dense: Any = None


def _modes() -> int:
    """How many dispatch modes and transforms of torch.func would see an operation of ours."""
    return 1


def prepare() -> None:
    """Takes from torch what every mark needs."""
    global _simple, _word, _dense, _modes  # noqa: PLW0603 - looked up once, since a mark costs microseconds
    import torch

    _simple, _word = frozenset({torch.Tensor, torch.nn.Parameter}), torch.int64
    _dense = torch.strided
    modes = torch._C._len_torch_dispatch_stack
    transforms = torch._C._are_functorch_transforms_active  # of torch.func; see examine/run/job/hooks/roots.py
    _modes = lambda: modes() or int(transforms())  # noqa: E731


def _other(tensor: Any) -> Any:
    """The mark of what is not simply dense, on the CPU and unseen by a mode of the job's."""
    import torch

    dense = _plain(torch, tensor)
    if dense is None or dense.is_meta:
        return None
    quiet = not torch._C._len_torch_dispatch_stack()
    if not dense.is_contiguous():
        if not quiet:
            return None
        dense = dense.detach().contiguous()
    if dense.device.type != "cpu":
        return _on_device(torch, dense.detach()) if quiet else None
    if quiet and dense is not tensor and limit == SMALL and dense.nbytes % 8 == 0 and dense.data_ptr() % 8 == 0:
        return mark(dense)
    return crc(dense, dense.numel() & 0xFFFF)


def _plain(torch: Any, tensor: Any) -> Any:
    """A dense tensor with memory of its own, of this rank's part where it is spread over ranks; None for any other."""
    kind = type(tensor)
    if kind is not torch.Tensor and kind is not torch.nn.Parameter:
        local = getattr(tensor, "_local_tensor", None)
        if local is not None:
            return _plain(torch, local)
        if kind.__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl:
            return None  # others with operations of their own may have no memory
        tensor = tensor.detach().as_subclass(torch.Tensor) if not torch._C._len_torch_dispatch_stack() else tensor
    if torch._C._are_functorch_transforms_active() or tensor.is_quantized:
        return None
    if tensor.layout is not torch.strided:
        if tensor.layout is not torch.sparse_coo:
            return None
        tensor = tensor.detach()._values()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.detach().resolve_conj().resolve_neg()
    return torch.view_as_real(tensor.detach()) if tensor.is_complex() else tensor


_weights: dict[Any, Any] = {}


def _on_device(torch: Any, tensor: Any) -> Any:
    """The same sums, weighed by their place, and left on the device: nobody waits for them."""
    size = tensor.numel() * tensor.element_size()
    if not size or tensor.device.type != "cuda" or torch.cuda.is_current_stream_capturing():
        return None
    flat = tensor.view(-1).view(torch.uint8)
    if size % 8 or flat.data_ptr() % 8:
        flat = torch.nn.functional.pad(flat, (0, -size % 8))
    words = flat.view(torch.int64)
    rows = words.numel() // ROW
    whole, rest = words[: rows * ROW].view(rows, ROW), words[rows * ROW :]
    sums = [_weighed(torch, each) for each in (whole.sum(0), whole.sum(1), rest) if each.numel()]
    return sums[0] if len(sums) == 1 else torch.stack(sums).sum(0)


def _weighed(torch: Any, words: Any) -> Any:
    """Both halves of each word times a number of its place: two sums that a change of a sign cannot leave."""
    known = _weights.get(words.device)
    if known is None or known.numel() < words.numel():
        count = 1 << max(words.numel() - 1, 4095).bit_length()
        places = torch.arange(1, count + 1, dtype=torch.int64, device=words.device)
        places = (places ^ (places >> 15)) * -7046029254386353131
        _weights[words.device] = known = ((places ^ (places >> 29)) * -4658895280553007687) | 1
    weights = known[: words.numel()]
    return torch.stack(((words & 0xFFFFFFFF) * weights, (words >> 32) * weights)).sum(1)

"""Copies between host and device: what is copied and how, by the arguments of the methods that do, and which memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..accelerator import accelerator

if TYPE_CHECKING:
    from collections.abc import Iterator

Arguments = tuple[Any, ...]
Options = dict[str, Any]


def may_cross(name: str, args: Arguments, kwargs: Options) -> bool:
    """Whether it may be a copy between host and device: the device has the tensor, or is named. Of `copy_` the source
    may also be a number.
    """
    if not hasattr(source_of(name, args, kwargs), "device"):
        return False
    others = (*args[1:], *kwargs.values())
    return name == accelerator.kind or accelerator.has(args[0]) or any(_is_of_device(each) for each in others)


def source_of(name: str, args: Arguments, kwargs: Options) -> Any:
    """What is copied."""
    if name != "copy_":
        return args[0]
    return args[1] if len(args) > 1 else kwargs.get("src")


def _is_of_device(value: Any) -> bool:
    """Whether VALUE is a tensor on the device, or names it; a number is an index."""
    if isinstance(value, str):
        return value.partition(":")[0] == accelerator.kind
    if isinstance(value, int):
        return not isinstance(value, bool)
    return accelerator.has(value) if hasattr(value, "device") else getattr(value, "type", "") == accelerator.kind


def is_non_blocking(args: Arguments, kwargs: Options) -> bool:
    """By position it is the first flag of each of these methods."""
    flags = [each for each in args if isinstance(each, bool)]
    return bool(kwargs.get("non_blocking", flags[0] if flags else False))


def is_pinned(source: Any) -> bool:
    """Tensors of other layouts cannot be asked."""
    import torch

    return bool(source.layout is torch.strided and source.is_pinned())


def classes_of_order() -> list[type]:
    """Streams and events, where they are classes of Python: those of C take no other methods."""
    named = (getattr(accelerator.module, name, None) for name in ("Stream", "Event"))
    return [each for each in named if isinstance(each, type) and each.__flags__ & 1 << 9]


def tensors_in(value: Any, depth: int = 4) -> Iterator[Any]:
    """The tensors in VALUE, and in lists, tuples and dictionaries in it: those that have memory of their own."""
    import torch

    if type(value) in {torch.Tensor, torch.nn.Parameter}:
        if value.layout is torch.strided:
            yield value
    elif depth and isinstance(value, (list, tuple, dict)):
        for each in [*value.values()] if isinstance(value, dict) else value:
            yield from tensors_in(each, depth - 1)


class Region:
    """A tensor's part of a memory. The memory is kept weakly: nothing that is allocated later is equal to it.

    key: of the memory, for as long as the region is kept. is_whole: the tensor has all bytes from its first element to
    its last; of another one only the first element is known.
    """

    __slots__ = ("_begin", "_end", "_memory", "is_whole", "key")

    def __init__(self, tensor: Any) -> None:
        from torch.multiprocessing.reductions import StorageWeakRef

        self._memory = StorageWeakRef(tensor.untyped_storage())
        self.key = int(self._memory.cdata)
        self.is_whole = bool(tensor.is_contiguous())
        size = tensor.element_size()
        self._begin = tensor.storage_offset() * size
        self._end = self._begin + size * (tensor.numel() if self.is_whole else 1)

    @property
    def is_gone(self) -> bool:
        """Whether nobody has the memory any more."""
        return bool(self._memory.expired())

    def meets(self, other: Region) -> bool:
        """Whether both certainly have bytes in common."""
        return self.key == other.key and max(self._begin, other._begin) < min(self._end, other._end)


def region_of(tensor: Any) -> Region | None:
    """None for what has no memory of its own: fakes, sparse tensors, those inside torch.func."""
    try:
        return Region(tensor) if tensor.numel() else None
    except RuntimeError:
        return None

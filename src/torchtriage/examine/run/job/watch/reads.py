"""Numbers that live on a device, read once they have arrived: the host never waits for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..accelerator import accelerator

if TYPE_CHECKING:
    from collections.abc import Callable

WAITING = 64  # reads under way at most; beyond, values are left out


class Late:
    """Reads small tensors: on the host at once, on a device by a copy to pinned memory that is looked at later."""

    def __init__(self) -> None:
        self._free: list[Any] = []
        self._waiting: list[_Read] = []

    def read(self, tensor: Any, then: Callable[[float], None]) -> None:
        """Calls then(value), at once or from a later `settle`; never, for what is no plain scalar that can be copied.

        Subclasses of Tensor are left alone: reading a distributed tensor is a collective.
        """
        import torch

        if type(tensor) is not torch.Tensor or tensor.numel() != 1:
            return
        if tensor.is_cpu:
            then(float(tensor.item()))
        elif len(self._waiting) < WAITING and accelerator.has(tensor):
            self._copy(tensor.detach().reshape(()), then)

    def read_all(self, tensor: Any, then: Callable[[list[Any]], None]) -> None:
        """The same for the numbers of a plain tensor of one dimension, whole ones as such."""
        import torch

        if type(tensor) is not torch.Tensor or tensor.dim() != 1:
            return
        if tensor.device.type == "cpu":
            then(tensor.tolist())
        elif len(self._waiting) < WAITING and accelerator.has(tensor):
            self._copy(tensor.detach(), then)

    def settle(self) -> None:
        """Hands out the values that have arrived, in the order in which they were asked for."""
        while self._waiting and self._waiting[0].mark.query():
            read = self._waiting.pop(0)
            for then in read.receivers:
                then(read.host.tolist())
            if not read.host.dim():
                self._free.append(read.host)

    def forget(self) -> None:
        self._free.clear()
        self._waiting.clear()

    def _copy(self, tensor: Any, then: Callable[[Any], None]) -> None:
        if accelerator.is_capturing() or not hasattr(accelerator.module, "Event"):
            return
        known = next((read for read in reversed(self._waiting) if read.is_of(tensor)), None)
        if known is not None:  # two probes ask for the loss of a step
            known.receivers.append(then)
            return
        host = self._free.pop() if self._free and not tensor.dim() else _pinned(tensor)
        host.copy_(tensor, non_blocking=True)
        self._waiting.append(_Read(tensor, host, accelerator.mark(device=tensor.device), then))


class _Read:
    """A copy of TENSOR to HOST that is under way until MARK is reached, for those who have asked for it.

    The tensor is kept until then, so that no other one gets its memory.
    """

    __slots__ = ("host", "mark", "receivers", "tensor", "version")

    def __init__(self, tensor: Any, host: Any, mark: Any, then: Callable[[Any], None]) -> None:
        self.tensor, self.version, self.host, self.mark, self.receivers = tensor, tensor._version, host, mark, [then]

    def is_of(self, tensor: Any) -> bool:
        """Whether TENSOR is the same numbers, which nobody has changed since."""
        own = self.tensor
        return bool(
            own.data_ptr() == tensor.data_ptr()
            and own.dtype == tensor.dtype
            and own.shape == tensor.shape
            and tensor._version == self.version
        )


def _pinned(tensor: Any) -> Any:
    """Whole numbers are kept to the last bit."""
    import torch

    dtype = torch.int64 if tensor.dim() and tensor.dtype == torch.int64 else torch.float32
    return torch.empty(tensor.shape, dtype=dtype, device="cpu", pin_memory=True)

"""What torch.nn.DataParallel asks torch's CUDA part for: batches and parameters from one device to the others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any


def map_parallel(torch: Any) -> None:
    """The functions below torch.nn.parallel.comm, from copies and sums of tensors."""

    def on(device: int) -> Any:
        return torch.device("cuda", device) if device >= 0 else torch.device("cpu")

    def broadcast(tensor: Any, devices: Sequence[int]) -> tuple[Any, ...]:
        return tuple(tensor.to(on(each)) for each in devices)

    def broadcast_coalesced(tensors: Sequence[Any], devices: Sequence[int], buffer_size: int) -> list[list[Any]]:  # noqa: ARG001
        return [[tensor.to(on(each)) for tensor in tensors] for each in devices]

    def scatter(tensor: Any, devices: Sequence[int], sizes: Any, dim: int, streams: Any) -> tuple[Any, ...]:
        chunks = tensor.split(list(sizes), dim) if sizes else tensor.chunk(len(devices), dim)
        moved = []
        for chunk, device, stream in zip(chunks, devices, streams or [None] * len(devices), strict=False):
            with torch.cuda.stream(stream) if stream is not None else nullcontext():
                moved.append(chunk.to(on(device), non_blocking=True))
        return tuple(moved)

    def gather(tensors: Sequence[Any], dim: int, destination: int | None) -> Any:
        target = on(torch.cuda.current_device() if destination is None else destination)
        return torch.cat([each.to(target) for each in tensors], dim)

    torch._C._broadcast, torch._C._broadcast_coalesced = broadcast, broadcast_coalesced
    torch._C._scatter, torch._C._gather = scatter, gather
    torch.cuda.nccl.is_available = lambda tensors: False  # noqa: ARG005 - sums are made by kernels

"""The words of a trace: categories of events, and names that say what a host or device is doing."""

from __future__ import annotations

import re

KERNEL, SET, COPY, CALL, OPERATOR, MARK, FRAME = range(7)
CATEGORIES = {
    "kernel": KERNEL,
    "gpu_memcpy": COPY,
    "gpu_memset": SET,
    "cuda_runtime": CALL,
    "cuda_driver": CALL,
    "cpu_op": OPERATOR,
    "user_annotation": MARK,
    "python_function": FRAME,
    # until torch 1.13
    "Kernel": KERNEL,
    "Memcpy": COPY,
    "Memset": SET,
    "Runtime": CALL,
    "Operator": OPERATOR,
}
"""Events of other categories are passed over: arrows between events, marks that are drawn on the device."""

ON_DEVICE = frozenset((KERNEL, COPY, SET))
STEP = re.compile(r"ProfilerStep\s?#(\d{1,12})\Z")
DATA = "enumerate(DataLoader)#"
OPTIMIZER = "Optimizer.step#"
WAITING_CALLS = frozenset(
    (
        *(f"{api}{what}Synchronize" for api in ("cuda", "hip") for what in ("Stream", "Device", "Event")),
        *(f"cu{what}Synchronize" for what in ("Stream", "Ctx", "Event")),
        "cudaMemcpy",
        "hipMemcpy",
    )
)
"""Calls that return when the device has done what was queued before."""
WAITING_OPERATORS = frozenset(("aten::item", "aten::_local_scalar_dense"))
_HOST_COLLECTIVE = re.compile(r"(?:gloo|nccl|mpi|ucc|xccl):(\w+)")
_KERNEL_COLLECTIVE = re.compile(
    r"(?:nccl|rccl)\w*?_?(AllReduce|AllGather|ReduceScatter|AllToAll|Broadcast|Reduce|Send|Recv|SendRecv)", re.I
)
MEETING = frozenset(("allreduce", "allgather", "reducescatter", "alltoall", "barrier"))
"""Collectives that end for nobody before everybody has come."""


def is_collective(kernel: str) -> bool:
    """Whether a kernel of this name is one of NCCL's or RCCL's."""
    return kernel[:4].lower() in ("nccl", "rccl") or "ncclDevKernel" in kernel or "ncclKernel" in kernel


def operation(name: str) -> str:
    """What a collective does, in one spelling: nccl:all_reduce, allreduce_coalesced → allreduce."""
    found = _HOST_COLLECTIVE.match(name) or _KERNEL_COLLECTIVE.search(name)
    plain = (found[1] if found else name).lower().replace("_", "").removesuffix("coalesced").removesuffix("base")
    return plain[:40]


def host_collective(mark: str) -> str | None:
    """The operation of a mark that a process group sets around a collective on the host; None for other marks."""
    found = _HOST_COLLECTIVE.match(mark)
    return operation(mark) if found else None

"""The backend of torch.distributed for simulated tensors, `init_process_group("sim")`; CPU tensors use gloo.

Name it: without a name torch 2.13 registers this backend but makes gloo the default, and DistributedDataParallel fails.
"""

from __future__ import annotations

from typing import Any

from .device_module import NAME


def register(native: Any) -> None:
    """Registers the backend, if torch was built with distributed and gloo."""
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_gloo_available():
        return

    def create(store: Any, rank: int, size: int, timeout: Any) -> Any:
        return native.collectives_over(dist.ProcessGroupGloo(store, rank, size, timeout=timeout))

    dist.Backend.register_backend(NAME, create, devices=[NAME, "cpu"])

"""The facts of the job's set-up that a specialist asks for first."""

from __future__ import annotations

import os
import platform
import sys
import zlib
from collections import Counter
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Any

from ..accelerator import accelerator
from ..events import Setup, Start
from ..ranks import membership
from ..record import redaction

if TYPE_CHECKING:
    from ..job import Job

OPTIONS = ("lr", "weight_decay", "betas", "momentum", "fused", "foreach", "capturable")
MOST = 4  # models and optimizers that are described
LOADER = ("batch_size", "num_workers", "pin_memory", "persistent_workers", "prefetch_factor", "drop_last", "timeout")


def first_line(rank: int) -> Start:
    """What is known before the first step."""
    import torch

    return Start(
        pid=os.getpid(),
        rank=rank,
        world_size=membership.world_size(),
        local_rank=membership.local_rank(),
        host=os.uname().nodename,
        restart=membership.restarts(),
        launcher=os.environ.get("TORCHTRIAGE_LAUNCHER"),
        time=time_ns(),
        versions={"torch": str(torch.__version__), "python": platform.python_version(), "cuda": torch.version.cuda},
        platform=sys.platform,
        cpus=os.cpu_count(),
        threads=torch.get_num_threads(),
        devices=accelerator.devices(),
        argv=redaction.arguments(sys.orig_argv),
        script=_script(),
        environment=redaction.environment(),
    )


def place(job: Job) -> None:
    """Writes once, after the first step, what models, optimizers, loaders and batches the job has."""
    probe, seen = job.placing, _Seen()

    def batch(loader: Any, batch: Any) -> None:
        if seen.batch is None:
            seen.batch = _shapes(batch)
            seen.loaders.append(_loader(loader))

    def forward(_module: Any, args: Any, kwargs: Any) -> None:
        if seen.precision is None:
            seen.precision = _precision()
            seen.inputs = _shapes([*args, *kwargs.values()])

    def turned(optimizer: Any, scaler: Any = None) -> None:
        if len(seen.optimizers) < MOST:
            seen.optimizers.append(_optimizer(optimizer))
            seen.scaled = scaler is not None or job.scaling.scaler is not None

    def write(_step: int = 0) -> None:
        if job.writer.opened:
            job.record(Setup(models=[_model(module) for module in list(job.roots)[:MOST]], **vars(seen)))
            job.withdraw(probe)

    for event, listener in (("batch", batch), ("forward", forward), ("stepped", turned), ("skipped", turned)):
        job.on(event, listener)
    job.on("iterated", write)
    job.on("ending", write)


class _Seen:
    """What has been seen so far of what Setup tells."""

    def __init__(self) -> None:
        self.loaders: list[dict[str, Any]] = []
        self.optimizers: list[dict[str, Any]] = []
        self.batch: Any = None
        self.inputs: Any = None
        self.precision: dict[str, Any] | None = None
        self.scaled = False


def _script() -> dict[str, Any] | None:
    """The name of the file that runs, and a mark of its text, so that hosts can be compared."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    try:
        return {"file": Path(path).name, "mark": zlib.crc32(Path(path).read_bytes())} if path else None
    except OSError:  # it is gone, or an archive holds it
        return None


def _model(module: Any) -> dict[str, Any]:
    parameters = list(module.parameters())
    by_dtype: Counter[str] = Counter()
    for parameter in parameters:
        by_dtype[str(parameter.dtype).removeprefix("torch.")] += parameter.numel()
    return {
        "class": type(module).__name__,
        "parameters": dict(by_dtype),
        "tensors": len(parameters),
        "trainable": sum(each.numel() for each in parameters if each.requires_grad),
        "devices": sorted({str(each.device) for each in parameters}),
        "modules": sum(1 for _ in module.modules()),
    }


def _optimizer(optimizer: Any) -> dict[str, Any]:
    groups = optimizer.param_groups
    plain = {name: groups[0][name] for name in OPTIONS if groups and _plain(groups[0].get(name))}
    return {"class": type(optimizer).__name__, "groups": len(groups), **plain}


def _loader(loader: Any) -> dict[str, Any]:
    plain = {name: getattr(loader, name, None) for name in LOADER if _plain(getattr(loader, name, None))}
    return {"class": type(loader).__name__, "sampler": type(loader.sampler).__name__, **plain}


def _plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(_plain(each) for each in value)
    return isinstance(value, (bool, int, float, str))


def _shapes(value: Any, depth: int = 3) -> Any:
    """The shapes of the tensors in a batch, no values; what is deeper or of another kind by the name of its class."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        device = str(getattr(value, "device", "cpu"))
        shape = [size if isinstance(size, int) else str(size) for size in value.shape]  # of nested ones: j1
        return {"shape": shape, "dtype": str(value.dtype), "device": device}
    if isinstance(value, dict) and depth:
        return {str(key)[:40]: _shapes(each, depth - 1) for key, each in list(value.items())[:16]}
    if isinstance(value, (tuple, list)) and depth:
        return [_shapes(each, depth - 1) for each in value[:8]]
    return type(value).__name__


def _precision() -> dict[str, Any]:
    import torch

    on = accelerator.autocast()
    return {
        "autocast": str(torch.get_autocast_dtype(on[0])).removeprefix("torch.") if on else None,
        "matmul": torch.get_float32_matmul_precision(),
    }

"""What bits depend on beside the state: versions, flags, threads, devices, and the training's own configuration."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from typing import Any

from torchtriage.toolkit.state import plain

SHOWN = 120  # characters of a value that differs


def here(ranks: int) -> dict[str, Any]:
    """What it is in this process."""
    import torch

    numpy = sys.modules.get("numpy")
    cuda = torch.cuda
    return {
        "ranks": ranks,
        "python": sys.version.split()[0],
        "torch": str(torch.__version__),
        "numpy": str(numpy.__version__) if numpy is not None else None,
        "cuda": torch.version.cuda,
        "devices": [cuda.get_device_name(n) for n in range(cuda.device_count())] if cuda.is_initialized() else [],
        "threads": torch.get_num_threads(),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "cudnn.benchmark": torch.backends.cudnn.benchmark,
        "cudnn.deterministic": torch.backends.cudnn.deterministic,
        "float32 matmul precision": torch.get_float32_matmul_precision(),
        "default dtype": str(torch.get_default_dtype()),
    }


def plain_config(config: Any) -> Any:
    """CONFIG as plain values; raises TriageError for what JSON cannot hold, naming its key."""
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        config = {each.name: getattr(config, each.name) for each in dataclasses.fields(config)}
        config = {name: plain_config(each) if dataclasses.is_dataclass(each) else each for name, each in config.items()}
    elif isinstance(config, argparse.Namespace):
        config = dict(vars(config))
    plain.encoded(config, "config", lambda _, path: {"$": "tensor", "name": path})
    return config


def differences(there: Any, now: Any, path: str) -> list[str]:
    """What is another value now, told one by one."""
    if isinstance(there, dict) and isinstance(now, dict):
        return [
            line
            for key in {**there, **now}
            for line in differences(there.get(key), now.get(key), f"{path}{key}." if path else f"{key}.")
        ]
    if plain.same(there, now):
        return []
    return [f"{path.rstrip('.')} was {_short(there)}, and is {_short(now)}"]


def _short(value: Any) -> str:
    said = repr(value)
    return said if len(said) <= SHOWN else f"{said[:SHOWN]}…"

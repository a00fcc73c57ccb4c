"""Which of the processes that train together this one is: by its group, else as its launcher numbered it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

# Rank, number of processes, rank on its host: of torchrun, Open MPI, MPICH and its kin, Slurm. The nearest comes first:
# mpirun within a Slurm job numbers anew, torchrun within either does too. Of SLURM_NTASKS only a step makes use.
LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"),
)
_SPAWN = "torch.multiprocessing.spawn"


def rank() -> int:
    """This process's number among those that train together, 0 when nobody says."""
    group = _group()
    if group is not None:
        return int(group.get_rank())
    return max(_number(_launcher()[0]), _spawned(), 0)


def world_size() -> int:
    """How many train together."""
    group = _group()
    return int(group.get_world_size()) if group is not None else max(_number(_launcher()[1]), 1)


def local_rank() -> int | None:
    """Which one of its host this is; None when nobody says."""
    place = _number(_launcher()[2])
    return place if place >= 0 else None


def restarts() -> int:
    """How often the launcher has started the job anew."""
    return max(_number("TORCHELASTIC_RESTART_COUNT"), 0)


def _group() -> Any:
    """torch.distributed, where this process is in a group."""
    from torch import distributed

    return distributed if distributed.is_available() and distributed.is_initialized() else None


def _launcher() -> tuple[str, str, str]:
    return next((names for names in LAUNCHERS if _number(names[0]) >= 0), LAUNCHERS[0])


def _number(name: str) -> int:
    """What the environment says, -1 when that is no number."""
    value = os.environ.get(name, "")
    return int(value) if value.isascii() and value.isdecimal() else -1


def _spawned() -> int:
    """The number that torch.multiprocessing.spawn gave this process; -1 in any other."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "_wrap" and frame.f_globals.get("__name__") == _SPAWN:
            number = frame.f_locals.get("i")
            return number if isinstance(number, int) else -1
        frame = frame.f_back
    return -1

"""Trainings on several gloo ranks, forked from one process that has torch, and what each rank gave."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import sys
from multiprocessing import forkserver, get_context
from pathlib import Path
from typing import Any

import torch
from torch import nn

_PARTS = get_context("forkserver")
_PARTS.set_forkserver_preload(["torch", "torch._dynamo", "torch.distributed.tensor", "ranked", "trained"])
_PATHS = os.pathsep.join(each for each in sys.path if each)
HELD: list[Any] = []  # a wrapper that goes before its process might wait for gloo's thread for ever


def on_ranks(work: str, folder: Path, count: int = 2, **given: Any) -> list[Any]:
    """What WORK, a function of this module, gave on each of COUNT ranks; an error of a rank is its text."""
    _serve()
    folder.mkdir(exist_ok=True)
    store = folder / f"store{len(list(folder.iterdir()))}"
    processes = []
    for rank in range(count):
        told = (work, str(folder), str(store), rank, count, given)
        processes.append(_PARTS.Process(target=_run, args=told))
        processes[-1].start()
    for each in processes:
        each.join(200)
    said = [Path(f"{store}.{rank}") for rank in range(count)]
    return [json.loads(each.read_text()) if each.exists() else "died" for each in said]


def _serve() -> None:
    """Starts the server that forks, unless it runs, where it finds what it is to have: some Pythons give it no paths.

    The loaders' workers are forks of it, too.
    """
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = _PATHS
    try:
        forkserver.ensure_running()
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


def _run(work: str, folder: str, store: str, rank: int, count: int, given: dict[str, Any]) -> None:
    import torch.distributed as dist

    torch.set_num_threads(1)
    limit = dt.timedelta(seconds=60)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=count, timeout=limit)
    try:
        found = globals()[work](Path(folder), rank, count, **given)
    except Exception as error:  # noqa: BLE001 - told to who asked
        found = f"{type(error).__name__}: {error}"
    Path(f"{store}.{rank}").write_text(json.dumps(found))
    dist.barrier()
    os._exit(0)


def replicas(folder: Path, rank: int, count: int, save_at: tuple[int, int], **options: Any) -> dict[str, Any]:
    """A training under DDP at one stretch, and one that was stopped and resumed: their steps."""
    from torch.nn.parallel import DistributedDataParallel as Parallel
    from trained import Training

    def made(name: str) -> Training:
        return Training(folder / name, ranks=(rank, count), **options)

    straight, stopped = made("straight"), made("stopped")

    def wrapped(model: Any) -> Any:
        HELD.append(Parallel(model))
        return HELD[-1]

    straight = made("straight")
    straight.run(wrapped=wrapped)
    stopped = made("stopped")
    stopped.run(save_at=tuple(save_at), wrapped=wrapped)
    stopped.state.close()
    resumed = made("stopped")
    loaded = resumed.state.load()
    torch.rand(3), random.random()
    resumed.run(wrapped=wrapped)
    return {
        "same": straight.steps == stopped.steps + resumed.steps,
        "steps": len(straight.steps),
        "notes": loaded.notes,
        "bits": hash(straight.bits()) % 2**32,
    }


def _sharded(folder: Path, count: int, **options: Any) -> tuple[Any, Any, Any]:
    """A model whose parameters lie on all ranks (FSDP2), its optimizer after three steps, and their state."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    from torchtriage.toolkit import TrainingState

    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 3, bias=False))
    mesh = init_device_mesh("cpu", (count,))
    for each in (model[0], model[2], model):
        fully_shard(each, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    return model, optimizer, TrainingState(folder / "sharded", model=model, optimizer=optimizer, **options)


def _stepped(model: Any, optimizer: Any, count: int) -> None:
    for number in range(count):
        optimizer.zero_grad()
        model(torch.full((4, 6), 0.1 * (number + 1))).square().sum().backward()
        optimizer.step()


def _whole(model: Any, optimizer: Any) -> list[Any]:
    """All values, as a single process has them."""
    held = [*model.parameters(), *(optimizer.state[each]["exp_avg_sq"] for each in model.parameters())]
    return [
        each.full_tensor().flatten().tolist() if hasattr(each, "full_tensor") else each.flatten().tolist()
        for each in held
    ]


def shards_saved(folder: Path, rank: int, count: int, **options: Any) -> dict[str, Any]:
    """Saved after three steps; the values there, and those two steps later."""
    model, optimizer, state = _sharded(folder, count, **options)
    _stepped(model, optimizer, 3)
    state.save(3)
    state.close()
    at = _whole(model, optimizer)
    _stepped(model, optimizer, 2)
    return {"at": at, "later": _whole(model, optimizer)}


def shards_loaded(folder: Path, rank: int, count: int) -> dict[str, Any]:
    model, optimizer, state = _sharded(folder, count)
    loaded = state.load()
    at = _whole(model, optimizer)
    _stepped(model, optimizer, 2)
    return {"at": at, "later": _whole(model, optimizer), "notes": loaded.notes, "step": loaded.step}


def fails_on(folder: Path, rank: int, count: int, victim: int) -> str:
    """A save of which rank VICTIM cannot write its part."""
    from torchtriage.core.errors import TriageError
    from torchtriage.toolkit import TrainingState
    from torchtriage.toolkit.state import disk

    model = nn.Linear(2, 2)
    with TrainingState(folder / "fails", model=model) as state:
        state.save(1)

        def broken(change: disk.Change) -> None:
            if change.kind == "write":
                raise OSError(5, "Input/output error", change.path)

        disk.before = broken if rank == victim else None
        try:
            state.save(2)
        except TriageError as error:
            disk.before = None
            return f"{error.what} | {state.load().step}"
    return "saved"


def dies_on(folder: Path, rank: int, count: int, victim: int) -> str:
    """Rank VICTIM ends as the others save for the second time."""
    from torchtriage.core.errors import TriageError
    from torchtriage.toolkit import TrainingState

    state = TrainingState(folder / "dies", model=nn.Linear(2, 2))
    state.save(1)
    if rank == victim:
        os._exit(1)
    try:
        state.save(2)
    except TriageError as error:
        return str(error)
    return "saved"


def apart(folder: Path, rank: int, count: int) -> str:
    """Each rank names a folder of its own."""
    from torchtriage.toolkit import TrainingState

    with TrainingState(folder / f"own{rank}", model=nn.Linear(2, 2)) as state:
        state.save(1)
        return str(state.load().step)

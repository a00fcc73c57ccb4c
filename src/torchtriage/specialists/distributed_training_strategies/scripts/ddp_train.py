"""A complete DistributedDataParallel training: launch, devices, data, accumulation, AMP, clipping, evaluation, saving.

    torchrun --nproc-per-node 2 ddp_train.py             two processes on this host (gloo on a CPU, nccl with CUDA)
    python ddp_train.py                                  alone, world size 1

Rank 0 prints for each epoch the loss and accuracy over all ranks, whether the replicas are equal bit by bit, and where
it saved. Copy `main`, `train` and `evaluate`; model and data are toys.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def enter(folder: str) -> Any:
    """Joins the group of the launcher, or one of a single process, and says which device is ours."""
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)  # before anything makes a tensor
    backend = "nccl" if cuda else "gloo"
    if "RANK" in os.environ:
        dist.init_process_group(backend)
    else:
        dist.init_process_group(backend, init_method=Path(folder, "store").as_uri(), rank=0, world_size=1)
    return device


def wrapped(device: Any) -> DistributedDataParallel:
    model: nn.Module = nn.Sequential(nn.Linear(20, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
    if device.type == "cuda":
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)  # only where batches per rank are small
    model = model.to(device)  # first to the device, then wrap, then the optimizer
    return DistributedDataParallel(model, device_ids=[device.index] if device.type == "cuda" else None)


def data(seed: int, count: int) -> TensorDataset:
    inputs = torch.randn(count, 20, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(inputs, (inputs[:, 0] > 0).long())


def train(
    model: DistributedDataParallel, loader: Any, optimizer: Any, scaler: Any, device: Any, every: int
) -> torch.Tensor:
    """One epoch; the mean loss over all ranks."""
    model.train()
    total = torch.zeros(2, device=device)
    steps = len(loader) // every * every  # the same on all ranks: the sampler gives each as many
    for index, batch in zip(range(1, steps + 1), loader, strict=False):
        inputs, targets = (each.to(device, non_blocking=True) for each in batch)
        last = index % every == 0
        with contextlib.nullcontext() if last else model.no_sync():  # around forward AND backward
            with torch.autocast(device.type, dtype=torch.float16, enabled=scaler.is_enabled()):
                loss = nn.functional.cross_entropy(model(inputs), targets)
            scaler.scale(loss / every).backward()
        total += torch.stack((loss.detach(), torch.ones_like(loss)))
        if last:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    dist.all_reduce(total)
    return total[0] / total[1]


def evaluate(model: DistributedDataParallel, dataset: TensorDataset, device: Any) -> torch.Tensor:
    """The accuracy over the whole set: each rank counts its own samples once, then the counts are added."""
    model.eval()
    rank, size = dist.get_rank(), dist.get_world_size()
    own = torch.utils.data.Subset(dataset, range(rank, len(dataset), size))  # no sample twice, unlike the sampler
    counts = torch.zeros(2, device=device)
    with torch.no_grad():
        for inputs, targets in DataLoader(own, batch_size=32):
            # .module: shares may differ by a batch, and the wrapper's forward may wait for the other ranks
            right = model.module(inputs.to(device)).argmax(1) == targets.to(device)
            counts += torch.stack((right.sum(), torch.tensor(len(right), device=device)))
    dist.all_reduce(counts)
    return counts[0] / counts[1]


def equal(model: nn.Module) -> bool:
    """Whether all ranks hold the same parameters, bit by bit."""
    own = torch.cat([each.detach().flatten() for each in model.parameters()])
    first = own.clone()
    dist.broadcast(first, src=0)
    flag = (own == first).all().float()
    dist.all_reduce(flag, op=dist.ReduceOp.MIN)
    return bool(flag)


def save(model: DistributedDataParallel, optimizer: Any, scaler: Any, epoch: int, path: Path) -> None:
    """One rank writes, beside the target first; the others wait."""
    if dist.get_rank() == 0:
        parts = {"model": model.module, "optimizer": optimizer, "scaler": scaler}
        state = {name: each.state_dict() for name, each in parts.items()} | {"epoch": epoch}
        torch.save(state, path.with_suffix(".part"))
        path.with_suffix(".part").replace(path)
    dist.barrier()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=16, help="samples per rank and micro-batch")
    parser.add_argument("--accumulate", type=int, default=2, help="micro-batches per step")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        device = enter(folder)
        torch.manual_seed(dist.get_rank())  # replicas start equal all the same: rank 0's weights are sent
        model = wrapped(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        scaler = torch.amp.GradScaler(device.type, enabled=device.type == "cuda")
        dataset, held = data(1, 500), data(2, 101)
        sampler = DistributedSampler(dataset)
        loader = DataLoader(dataset, batch_size=given.batch, sampler=sampler, drop_last=True)
        for epoch in range(given.epochs):
            sampler.set_epoch(epoch)
            loss = train(model, loader, optimizer, scaler, device, given.accumulate)
            right, same = evaluate(model, held, device), equal(model)
            save(model, optimizer, scaler, epoch, Path(folder, "last.pt"))
            if dist.get_rank() == 0:
                print(f"epoch {epoch}: loss {loss:.3f} accuracy {right:.3f} replicas equal: {same}")
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

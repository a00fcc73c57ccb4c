"""One rank of a training with DistributedDataParallel; tells its losses, its weights and its collectives as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from torch import distributed, nn


def main(device: str, rank: int, folder: Path) -> None:
    torch.set_num_threads(1)
    told: dict[str, object] = {}
    if device == "sim":
        from torchtriage import simulation
        from torchtriage.simulation import Costs, Transfer

        simulator = simulation.start(costs=Costs.free(kernel=1_000, launch=10, collective=Transfer(5_000)))
    store = distributed.FileStore(str(folder / f"store-{device}"), 2)
    distributed.init_process_group("sim" if device == "sim" else "gloo", store=store, rank=rank, world_size=2)
    told["losses"], told["weights"] = train(device, rank)
    if device == "sim":
        told["collectives"] = collectives(rank)
        simulator.reset()
        distributed.barrier()
        simulator.reset()
        simulator.host(rank * 70_000)
        x = torch.ones(1, device="sim")
        distributed.all_reduce(x)
        told["host"] = simulator.now
        x.add_(1)
        told["late"] = [[each.name, each.ready, each.start, each.end] for each in simulator.ledger.collectives]
        told["after"] = [[each.start, each.end] for each in simulator.ledger.kernels][-1]
    (folder / f"{device}-{rank}.json").write_text(json.dumps(told))
    distributed.destroy_process_group()


def train(device: str, rank: int) -> tuple[list[float], list[float]]:
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4)).to(device)
    model = nn.parallel.DistributedDataParallel(body, bucket_cap_mb=0.001)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=True)
    source = torch.Generator().manual_seed(rank)
    losses = []
    for step in range(5):
        inputs = torch.randn(8, 16, generator=source).to(device)
        targets = torch.randint(4, (8,), generator=source).to(device)
        alone = step == 1  # its gradients go into the next step's
        with model.no_sync() if alone else torch.enable_grad():
            loss = nn.functional.cross_entropy(model(inputs), targets)
            loss.backward()
        if not alone:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    return losses, [each.sum().item() for each in model.parameters()]


def collectives(rank: int) -> dict[str, object]:
    """What each collective makes of the number of the rank."""

    def full(size: int = 2) -> torch.Tensor:
        return torch.full((size,), float(rank), device="sim")

    found: dict[str, object] = {}
    for name, op in (("sum", "SUM"), ("mean", "AVG"), ("max", "MAX")):
        x = full()
        distributed.all_reduce(x, op=getattr(distributed.ReduceOp, op))
        found[name] = x.tolist()
    parts = [torch.empty(2, device="sim") for _ in range(2)]
    distributed.all_gather(parts, full())
    found["gathered"] = torch.cat(parts).tolist()
    x = full()
    distributed.broadcast(x, 1)
    found["broadcast"] = x.tolist()
    x = torch.empty(2, device="sim")
    distributed.all_to_all_single(x, torch.arange(2.0, device="sim") + 10 * rank)
    found["exchanged"] = x.tolist()
    x = torch.empty(1, device="sim")
    distributed.reduce_scatter(x, list(torch.arange(2.0, device="sim").split(1)))
    found["scattered"] = x.tolist()
    x = full()
    distributed.send(x, 0) if rank else distributed.recv(x, 1)
    found["sent"] = x.tolist()
    work = distributed.all_reduce(x, async_op=True)
    work.wait()
    found["later"] = x.tolist()
    host = torch.tensor([rank + 1])
    distributed.all_reduce(host)
    found["host"] = host.tolist()
    objects: list[object] = [None, None]
    distributed.all_gather_object(objects, {"rank": rank})
    found["objects"] = objects
    return found


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))

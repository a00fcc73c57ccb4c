"""Trainings of two ranks on the simulated device, each with one thing wrong or healthy; one process is one rank.

Seconds of the simulated clock cost nothing, and beside them the watch is nothing. `python ranked.py RANK FOLDER` runs
all jobs, each under a watch of its own that leaves a record in FOLDER/JOB, and the ledger of the device beside it.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from torchtriage import simulation
from torchtriage.simulation import Costs, Simulator, Transfer

S = 1_000_000_000
WIDTH, LAYERS, BATCH, STEPS = 16, 8, 8, 60
PRODUCTS = {"addmm": S // 4, "mm": S // 4}
COSTS = Costs.free(launch=S // 1000, kernel=S // 500, kernels=PRODUCTS, collective=Transfer(S // 20))
TWO_LAYERS = 0.0011  # MiB of a bucket


def network() -> nn.Sequential:
    torch.manual_seed(0)
    parts = [part for _ in range(LAYERS) for part in (nn.Linear(WIDTH, WIDTH), nn.Tanh())]
    return nn.Sequential(*parts)


@dataclass
class Parts:
    """What every loop needs. model: of this rank alone, on a device that need not be the current one."""

    simulator: Simulator
    rank: int
    model: nn.Module
    device: str

    def wrapped(self, megabytes: float = TWO_LAYERS) -> DistributedDataParallel:
        """The gradients of a layer are 1,088 bytes; a bucket ends with the layer that is too much for it."""
        return DistributedDataParallel(self.model, bucket_cap_mb=megabytes)

    def optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.model.parameters(), 0.01)

    def batches(self, steps: int = STEPS) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        source = torch.Generator().manual_seed(self.rank)
        samples = [(torch.randn(BATCH, WIDTH, generator=source), torch.zeros(BATCH, WIDTH)) for _ in range(steps)]
        return iter(torch.utils.data.DataLoader(samples, batch_size=None))  # type: ignore[arg-type]

    def loss(self, model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        inputs, targets = batch
        return nn.functional.mse_loss(model(inputs.to(self.device)), targets.to(self.device))


def plain(parts: Parts, megabytes: float = TWO_LAYERS) -> None:
    model, optimizer = parts.wrapped(megabytes), parts.optimizer()
    for batch in parts.batches():
        optimizer.zero_grad()
        parts.loss(model, batch).backward()
        optimizer.step()
        parts.simulator.step()


def in_one_bucket(parts: Parts) -> None:
    plain(parts, 25)


def in_tiny_buckets(parts: Parts) -> None:
    plain(parts, 0.0001)


def with_slow_kernels(parts: Parts) -> None:
    if parts.rank == 1:
        slow = {name: 3 * cost // 2 for name, cost in PRODUCTS.items()}
        parts.simulator.costs = replace(parts.simulator.costs, kernels=slow)
    plain(parts)


def with_slow_input(parts: Parts) -> None:
    class Slow(torch.utils.data.Dataset[tuple[torch.Tensor, torch.Tensor]]):
        def __len__(self) -> int:
            return STEPS

        def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
            parts.simulator.host(8 * S if parts.rank == 1 else S // 10)
            return torch.ones(BATCH, WIDTH), torch.zeros(BATCH, WIDTH)

    model, optimizer = parts.wrapped(), parts.optimizer()
    for batch in torch.utils.data.DataLoader(Slow(), batch_size=None):
        optimizer.zero_grad()
        parts.loss(model, batch).backward()
        optimizer.step()
        parts.simulator.step()


def with_slow_host(parts: Parts) -> None:
    model, optimizer = parts.wrapped(), parts.optimizer()
    for batch in parts.batches():
        optimizer.zero_grad()
        loss = parts.loss(model, batch)
        if parts.rank == 1:
            parts.simulator.host(8 * S)
        loss.backward()
        optimizer.step()
        parts.simulator.step()


def with_a_log_of_each_step(parts: Parts) -> None:
    """The host of rank 0 reads the loss and sends it away, before it goes on."""
    model, optimizer = parts.wrapped(), parts.optimizer()
    for batch in parts.batches():
        optimizer.zero_grad()
        loss = parts.loss(model, batch)
        loss.backward()
        optimizer.step()
        if parts.rank == 0:
            loss.item()
            parts.simulator.host(2 * S)
        parts.simulator.step()


def averaged_by_hand(parts: Parts) -> None:
    optimizer = parts.optimizer()
    for batch in parts.batches():
        optimizer.zero_grad()
        parts.loss(parts.model, batch).backward()
        for parameter in parts.model.parameters():
            distributed.all_reduce(parameter.grad)  # waits here
            parameter.grad /= 2
        optimizer.step()
        parts.simulator.step()


def averaged_in_one_piece(parts: Parts) -> None:
    optimizer = parts.optimizer()
    for batch in parts.batches():
        optimizer.zero_grad()
        parts.loss(parts.model, batch).backward()
        gradients = [each.grad for each in parts.model.parameters()]
        flat = torch.cat([each.flatten() for each in gradients])
        distributed.all_reduce(flat)
        flat /= 2
        for each, part in zip(gradients, flat.split([each.numel() for each in gradients]), strict=True):
            each.copy_(part.view_as(each))
        optimizer.step()
        parts.simulator.step()


def averaged_beside_computing(parts: Parts) -> None:
    """Each average is asked for as soon as its gradient is there, and waited for at the end."""
    optimizer, under_way = parts.optimizer(), []
    for parameter in parts.model.parameters():
        parameter.register_post_accumulate_grad_hook(
            lambda each: under_way.append((each, distributed.all_reduce(each.grad, async_op=True)))
        )
    for batch in parts.batches():
        optimizer.zero_grad()
        parts.loss(parts.model, batch).backward()
        for parameter, work in under_way:
            work.wait()
            parameter.grad /= 2
        under_way.clear()
        optimizer.step()
        parts.simulator.step()


def accumulated(parts: Parts) -> None:
    """Three of four passes leave their gradients to the fourth."""
    model, optimizer = parts.wrapped(), parts.optimizer()
    for number, batch in enumerate(parts.batches(4 * STEPS), 1):
        is_last = number % 4 == 0
        with nullcontext() if is_last else model.no_sync():
            (parts.loss(model, batch) / 4).backward()
        if is_last:
            optimizer.step()
            optimizer.zero_grad()
            parts.simulator.step()


def in_epochs(parts: Parts) -> None:
    """Of ten batches, the last of which is half as large."""
    model, optimizer = parts.wrapped(), parts.optimizer()
    source = torch.Generator().manual_seed(parts.rank)
    samples = torch.utils.data.TensorDataset(torch.randn(76, WIDTH, generator=source), torch.zeros(76, WIDTH))
    for _ in range(STEPS // 10):
        for batch in torch.utils.data.DataLoader(samples, BATCH, shuffle=True):
            optimizer.zero_grad()
            parts.loss(model, batch).backward()
            optimizer.step()
            parts.simulator.step()


def with_a_checkpoint_each_50_steps(parts: Parts) -> None:
    """Rank 0 reads the loss of each 50th step, and saves."""
    model, optimizer = parts.wrapped(), parts.optimizer()
    for step, batch in enumerate(parts.batches(2 * STEPS)):
        optimizer.zero_grad()
        loss = parts.loss(model, batch)
        loss.backward()
        optimizer.step()
        if step % 50 == 0 and parts.rank == 0:
            loss.item()
            parts.simulator.host(20 * S)
        parts.simulator.step()


def with_a_warm_up(parts: Parts) -> None:
    """The first two steps of rank 1 take ten times as long."""
    model, optimizer = parts.wrapped(), parts.optimizer()
    for step, batch in enumerate(parts.batches()):
        if step < 2 and parts.rank == 1:
            parts.simulator.host(30 * S)
        optimizer.zero_grad()
        parts.loss(model, batch).backward()
        optimizer.step()
        parts.simulator.step()


def with_samples_of_all_lengths(parts: Parts) -> None:
    """Now one rank has the longer samples, now the other."""
    model, optimizer = parts.wrapped(), parts.optimizer()
    source = torch.Generator().manual_seed(parts.rank)
    for batch in parts.batches():
        optimizer.zero_grad()
        loss = parts.loss(model, batch)
        long = int(torch.randint(8, (), generator=source))
        for _ in range(long):
            loss = loss + 0 * (parts.model[0].weight @ parts.model[0].weight).sum()
        loss.backward()
        optimizer.step()
        parts.simulator.step()


def with_buffers(parts: Parts) -> None:
    """They are sent round before each pass."""
    parts.model.register_buffer("seen", torch.zeros(WIDTH, device=parts.device))
    plain(parts)


def without_exchange(parts: Parts) -> None:
    """What one rank alone would do, but for a figure of all at the end."""
    optimizer = parts.optimizer()
    for batch in parts.batches():
        optimizer.zero_grad()
        loss = parts.loss(parts.model, batch)
        loss.backward()
        optimizer.step()
        parts.simulator.step()
    distributed.all_reduce(loss.detach())


SLOW_HOST = Costs.free(launch=S // 10, kernel=S // 100, collective=Transfer(S // 20))
SLOW_NETWORK = replace(COSTS, collective=Transfer(5 * S))


@dataclass(frozen=True)
class Ranked:
    """A loop, the costs of its device, and what is to be found: faults and verdicts.

    rank, limit: which one is late, and what of it is slow. devices: of the ranks.
    """

    loop: Callable[[Parts], None]
    costs: Costs = COSTS
    faults: frozenset[str] = frozenset()
    verdicts: frozenset[str] = frozenset({"compute-bound"})
    rank: int | None = None
    limit: str = ""
    devices: tuple[str, str] = ("sim:0", "sim:1")


NOTHING: frozenset[str] = frozenset()
STRAGGLER, COMMUNICATION = frozenset({"straggler"}), frozenset({"communication-bound"})
JOBS = {
    "slow kernels": Ranked(with_slow_kernels, faults=STRAGGLER, rank=1, limit="its kernels take"),
    "slow input": Ranked(
        with_slow_input, faults=STRAGGLER, verdicts=NOTHING, rank=1, limit="its device waits for batches"
    ),
    "slow host": Ranked(with_slow_host, faults=STRAGGLER, verdicts=NOTHING, rank=1, limit="since its host is slow"),
    "a log of each step": Ranked(
        with_a_log_of_each_step, faults=STRAGGLER | {"sync-bound"}, rank=0, limit="since its host is slow"
    ),
    "many collectives": Ranked(
        averaged_by_hand, replace(COSTS, collective=Transfer(S // 4)), COMMUNICATION, COMMUNICATION
    ),
    "one exposed bucket": Ranked(in_one_bucket, SLOW_NETWORK, COMMUNICATION, COMMUNICATION),
    "a slow network": Ranked(plain, SLOW_NETWORK, COMMUNICATION, COMMUNICATION),
    "tiny buckets": Ranked(in_tiny_buckets, faults=frozenset({"bucket-size"})),
    "one device": Ranked(plain, faults=frozenset({"launch-environment"}), devices=("sim:0", "sim:0")),
    "buckets": Ranked(plain),
    "one piece": Ranked(averaged_in_one_piece),
    "averages beside computing": Ranked(averaged_beside_computing),
    "accumulation": Ranked(accumulated),
    "epochs": Ranked(in_epochs),
    "checkpoints": Ranked(with_a_checkpoint_each_50_steps),
    "a warm-up": Ranked(with_a_warm_up),
    "samples of all lengths": Ranked(with_samples_of_all_lengths),
    "buffers": Ranked(with_buffers),
    "slow hosts": Ranked(plain, SLOW_HOST, verdicts=frozenset({"host-bound"})),
    "slow hosts and tiny buckets": Ranked(
        in_tiny_buckets, SLOW_HOST, frozenset({"bucket-size"}), frozenset({"host-bound"})
    ),
}


def run(job: Ranked, rank: int, folder: Path, simulator: Simulator, *, is_watched: bool = True) -> None:
    """Leaves the weights, and of a job that is watched its record and the ledger of its device."""
    from torchtriage.examine.run.job import begin
    from torchtriage.examine.run.job.accelerator import accelerator
    from torchtriage.triage import probes

    accelerator.forget()
    watch = begin(str(folder), [str(room) for room in probes()]) if is_watched else None
    simulator.costs = Costs.free()
    parts = Parts(simulator, rank, network().to(job.devices[rank]), job.devices[rank])
    distributed.barrier()
    simulator.reset()
    simulator.costs = job.costs
    job.loop(parts)
    torch.accelerator.synchronize()
    torch.save([each.detach().cpu() for each in parts.model.parameters()], folder / f"weights-{rank}.pt")
    if watch is not None:
        simulator.ledger.save(folder / f"ledger-{rank}.json")
        watch.leave("exit")
        assert not watch.lost, watch.lost
        watch.close()


def main(rank: int, folder: Path, names: list[str]) -> None:
    from torchtriage.examine.run.job.accelerator import accelerator

    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE="2")
    simulator = simulation.start(devices=2, costs=Costs.free())
    accelerator.clock = lambda: simulator.now  # type: ignore[method-assign]
    store = distributed.FileStore(str(folder / "store"), 2)
    distributed.init_process_group("sim", store=store, rank=rank, world_size=2)
    import_module("torch._dynamo")  # as the first optimizer does
    gc.collect()
    gc.freeze()
    for name in names or JOBS:
        run(JOBS[name], rank, folder / name, simulator)
    run(JOBS["buckets"], rank, folder / "buckets alone", simulator, is_watched=False)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])

"""What the probes cost a step, in microseconds of CPU time: with and without them, in processes that run by turns.

    python bench/overhead.py [--rounds N] [--steps N] [--peers FOLDER] [--ranks]

Each kind of watching has a process of its own. They are asked by turns for a burst of a few steps: what neighbours
on a shared machine do to one burst, they do to the next one as well. A burst's figure is the CPU time of its
*median* step. Steps are timed in pairs, one pass over a loader of two batches, and halved, as the peers are
(bench/peers/inside/loop.py). The first steps, all of which are watched, are left out: a long job has none of them.
A round has one burst of every kind, in an order that changes with the round; printed is the median over rounds of
the difference to the process without probes, with the 95 % interval of that median from order statistics, and its
ratio to the step without probes. Between bursts the caches belong to others, as they do not in a long job: what is
printed is rather too much.

machinery        the clock of steps and the record, no probe
between windows  all probes, in the steps that sampled ones do not watch: the step of a long job
at every step    all probes, each watching every step: what a step of a window costs
torch.profiler, anomaly mode, TraceML: peers

With --ranks each kind is a pair of processes that train under DistributedDataParallel (gloo), and a figure is the mean
of both: what a rank pays for the looks at its collectives, and for marks and hashes that ranks are compared by. Threads
that communicate are counted too, and make the figures of a busy machine wide.

A last line tells what windows add to the mean step of a job: what the governor has booked for sampled probes, over all
steps after the first ones.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import count, islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from time import process_time
from typing import Any

import torch
from peers.cost import traceml
from peers.inside.loop import small, tiny, transformer

from torchtriage.examine.run.job import Job, begin
from torchtriage.examine.run.job.governor import FIRST, Governor
from torchtriage.examine.run.series import interval_of_median
from torchtriage.triage import probes

Watching = Callable[[], AbstractContextManager[Any]]
Make = Callable[[], tuple[torch.nn.Module, torch.Tensor]]


class Always(Governor):
    """Watches every step, whatever it costs."""

    def ended(self, _nanoseconds: int) -> bool:
        self.steps += 1
        return False


class Never(Governor):
    """Watches the first steps, then none."""

    def ended(self, _nanoseconds: int) -> bool:
        self.steps += 1
        self.watching = self.steps < FIRST
        return self.steps == FIRST


@contextmanager
def watched(*rooms: Path, governor: type[Governor] = Governor) -> Iterator[Job]:
    """The job package as `torchtriage run` puts it into a job."""
    with tempfile.TemporaryDirectory() as folder:
        job = begin(folder, [str(path) for path in rooms])
        job.governor.__class__ = governor
        try:
            yield job
        finally:
            job.leave("bench")
            job.tidy()


def profiled() -> AbstractContextManager[Any]:
    watching: AbstractContextManager[Any] = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    return watching


WATCHING: dict[str, Watching] = {
    "nothing": nullcontext,
    "machinery": watched,
    "between windows": lambda: watched(*probes(), governor=Never),
    "at every step": lambda: watched(*probes(), governor=Always),
    "torch.profiler": profiled,
    "anomaly mode": lambda: torch.autograd.set_detect_anomaly(True),
}
AMONG_RANKS = ("nothing", "machinery", "between windows", "at every step")


def pairs(make: Make) -> Iterator[float]:
    """CPU seconds of a step, for each pair of steps after the first ones, on one thread, without end."""
    torch.manual_seed(0)
    model, sample = make()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    batches = torch.utils.data.DataLoader(sample.repeat(2, *[1] * (sample.dim() - 1)), batch_size=len(sample))
    for number in count():
        began = process_time()
        for batch in batches:
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
        if number >= FIRST // 2:
            yield (process_time() - began) / 2


def shared(make: Make, rank: int, store: str) -> Make:
    """What MAKE makes, trained by two ranks that meet at STORE."""

    def made() -> tuple[torch.nn.Module, torch.Tensor]:
        torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
        model, sample = make()
        return torch.nn.parallel.DistributedDataParallel(model), sample

    return made


def serve(asked: Connection, make: Make, watch: Watching) -> None:
    """Answers each number of steps with the CPU seconds of the median one of so many, until it is asked for none."""
    with watch():
        times = pairs(make)
        next(times)
        while steps := asked.recv():
            asked.send(statistics.median(islice(times, steps // 2)))


class Process:
    """One that trains a model under one kind of watching, a burst at a time."""

    def __init__(self, make: Make, watch: Watching) -> None:
        forking = get_context("fork")
        self.asking, asked = forking.Pipe()
        self.process = forking.Process(target=serve, args=(asked, make, watch))
        self.process.start()

    def burst(self, steps: int) -> float:
        self.asking.send(steps)
        return float(self.asking.recv())

    def end(self) -> None:
        self.asking.send(0)
        self.process.join()


class Pair:
    """Two that train one model together."""

    def __init__(self, make: Make, watch: Watching, folder: str) -> None:
        store = Path(folder, f"{id(watch)}.store").as_uri()
        self.both = [Process(shared(make, rank, store), watch) for rank in (0, 1)]

    def burst(self, steps: int) -> float:
        """The mean of both, which wait for each other."""
        for each in self.both:
            each.asking.send(steps)
        return statistics.mean(float(each.asking.recv()) for each in self.both)

    def end(self) -> None:
        for each in self.both:
            each.asking.send(0)
        for each in self.both:
            each.process.join()


def windows(make: Make, steps: int) -> float:
    """Seconds that the governor's windows add to a step in the mean, as it has booked them."""
    with watched(*probes()) as job:
        governor, times = job.governor, pairs(make)
        next(times)
        before = sum(governor.costs.get(probe, 0) for probe in governor.sampled)
        number = 2 * sum(1 for _ in islice(times, steps // 2))
        return (sum(governor.costs.get(probe, 0) for probe in governor.sampled) - before) / number / 1e9


def compare(make: Make, rounds: int, steps: int) -> None:
    plain = by_turns(make.__name__, {name: Process(make, watch) for name, watch in WATCHING.items()}, rounds, steps)
    print(f"  windows add {windows(make, 400) * 1e6:.0f} us to the mean step of {plain * 1e6:.0f} us", flush=True)


def compare_ranks(make: Make, rounds: int, steps: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pairs = {name: Pair(make, WATCHING[name], folder) for name in AMONG_RANKS}
        by_turns(f"{make.__name__}, two ranks", pairs, rounds, steps)


def by_turns(what: str, processes: Mapping[str, Process | Pair], rounds: int, steps: int) -> float:
    """Prints what each kind of watching adds; returns the seconds of a step without any."""
    found: dict[str, list[float]] = {name: [] for name in processes}
    for number in range(rounds + 1):
        names = list(processes)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            time = processes[name].burst(steps)
            if number:  # the first round warms up
                found[name].append(time)
    for process in processes.values():
        process.end()
    plain = found.pop("nothing")
    print(f"{what}: {statistics.median(plain) * 1e6:.0f} us a step, {rounds} rounds of {steps} steps")
    for name, times in found.items():
        told(name, [(with_it - alone, with_it / alone) for with_it, alone in zip(times, plain, strict=True)])
    return statistics.median(plain)


def told(name: str, pairs: list[tuple[float, float]], note: str = "") -> None:
    """PAIRS: seconds added, and the ratio to the step alone."""
    added, ratio = sorted(each for each, _ in pairs), statistics.median(each for _, each in pairs)
    low, high = (edge * 1e6 for edge in interval_of_median(added))
    print(f"  {name:<15} {statistics.median(added) * 1e6:+8.0f} us  ({low:+.0f} to {high:+.0f})  x {ratio:.3f}{note}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--peers", type=Path, help="environments with the peers in them: bench/faults.py makes them")
    parser.add_argument("--ranks", action="store_true", help="two ranks under DistributedDataParallel")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.ranks:
        for make in (small, transformer):
            compare_ranks(make, options.rounds, options.steps)
        return
    for make in (tiny, small, transformer):
        compare(make, options.rounds, options.steps)
        if options.peers:
            processes = traceml(options.peers, make.__name__, options.rounds // 4, 12 * options.steps)
            told("TraceML", processes, "  (processes of their own by turns)")


if __name__ == "__main__":
    main()

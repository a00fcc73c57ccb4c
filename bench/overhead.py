"""What the probes cost a step, in microseconds of CPU time: with and without them, in processes that run by turns.

    python bench/overhead.py [--rounds N] [--steps N] [--only MODEL…] [--peers FOLDER] [--ranks | --workers | --sim]

Each kind of watching has a process of its own. They are asked by turns for a burst of a few steps: what neighbours
on a shared machine do to one burst, they do to the next one as well. A burst's figure is the CPU time of its
*median* step. Steps are timed in pairs, and halved, as the peers are (bench/peers/inside/loop.py); a pass over the
loader has 64 of them. The first steps, all of which are watched, are left out: a long job has none of them.
A round has one burst of every kind, in an order that changes with the round; printed is the median over rounds of
the difference to the process without probes, with the 95 % interval of that median from order statistics, and its
ratio to the step without probes. Between bursts the caches belong to others, as they do not in a long job: what is
printed is rather too much.

machinery        the clock of steps and the record, no probe
between windows  all probes, in the steps that sampled ones do not watch: up to step 1,024, spaced ones see each fourth
a long job       after step 1,024, where most steps rest, with all windows; its *mean* step, too
nothing again    the control: a second process without probes
at every step    window after window: what a watched step costs; in the mean, with those that look at the order of calls
torch.profiler, anomaly mode, TraceML: peers

What the report of the long job says that the probes took stands below it, against what was measured: its mean.

With --workers the batches come from a worker of the loader. With --ranks each kind is a pair of processes that train
under DistributedDataParallel (gloo), and a figure is the mean of both: what a rank pays for the looks at its
collectives, and for marks and hashes that ranks are compared by. Threads that communicate are counted too, and make the
figures of a busy machine wide. With --sim model and batches lie on the simulated accelerator, whose kernels the host
computes: a figure is the CPU time of both, and the kernels that probes launch are in it. How often the host waits for
the device in a step stands below: where it does more often than alone, the watch makes it wait.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain, count, islice, repeat
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import torch
from peers.cost import traceml
from peers.inside.loop import MODELS

from torchtriage import simulation
from torchtriage.examine.run.job import Job, begin
from torchtriage.examine.run.job.watch.governor import EARLY, FIRST, WINDOW, Governor
from torchtriage.examine.run.measures.figures import later, overhead
from torchtriage.examine.run.reader.load import read
from torchtriage.examine.run.series.quantiles import interval_of_median
from torchtriage.triage import probes

Watching = Callable[[], AbstractContextManager[Any]]
Make = Callable[[], tuple[torch.nn.Module, torch.Tensor]]


class Always(Governor):
    """Watches every step, whatever it costs, in windows that follow one another."""

    def ended(self, _nanoseconds: int) -> bool:
        self.steps += 1
        is_next = self.steps >= FIRST and self.steps % WINDOW == 0
        self.windows += is_next
        return is_next


class Never(Governor):
    """Watches the first steps, then none."""

    def ended(self, _nanoseconds: int) -> bool:
        self.steps += 1
        self.watching = self.steps < FIRST
        return self.steps == FIRST


class Late(Governor):
    """As in a job that is past its first EARLY steps."""

    def reaches(self, step: int, *, is_due: bool = False) -> bool:
        return super().reaches(step + EARLY if self.steps > FIRST else step, is_due=is_due)


@contextmanager
def watched(*rooms: Path, governor: type[Governor] = Governor) -> Iterator[Job]:
    """The job package as `torchtriage run` puts it into a job."""
    with tempfile.TemporaryDirectory() as folder:
        job = begin(folder, [str(path) for path in rooms])
        job.governor.__class__ = governor
        if governor is Late:
            job.rest.first, job.rest.closely = FIRST, 0
            job.rest.restart()
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
    "nothing again": nullcontext,
    "machinery": watched,
    "between windows": lambda: watched(*probes(), governor=Never),
    "a long job": lambda: watched(*probes(), governor=Late),
    "at every step": lambda: watched(*probes(), governor=Always),
    "torch.profiler": profiled,
    "anomaly mode": lambda: torch.autograd.set_detect_anomaly(True),
}
EPOCH = 64  # batches of a pass over the loader
SETTLING = 1100  # steps in which a long job samples lines, and measures what its watched steps cost
IN_THE_MEAN = ("nothing again", "a long job", "at every step")
AMONG_RANKS = ("nothing", "nothing again", "machinery", "between windows", "a long job", "at every step")


def pairs(make: Make, workers: int = 0, device: str = "cpu") -> Iterator[float]:
    """CPU seconds of a step, for each pair of steps after the first ones, on one thread, without end."""
    torch.manual_seed(0)
    model, sample = make()
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    samples = sample.repeat(EPOCH, *[1] * (sample.dim() - 1))
    loader = torch.utils.data.DataLoader(
        samples, batch_size=len(sample), num_workers=workers, persistent_workers=workers > 0
    )
    batches = chain.from_iterable(repeat(loader))
    for number in count():
        began = process_time()
        for batch in islice(batches, 2):
            optimizer.zero_grad()
            model(batch.to(device)).square().mean().backward()
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


def serve(asked: Connection, make: Make, watch: Watching, workers: int, *, is_simulated: bool) -> None:
    """Answers each number of steps with the CPU seconds of the median one of so many, until it is asked for none: then
    with the share of the time that the report of the run would say the probes took, where there is one.
    """
    simulator = simulation.start(costs=simulation.Costs.free()) if is_simulated else None
    with watch() as job:
        times = pairs(make, workers, "sim" if simulator is not None else "cpu")
        next(times)
        before, done = waits(simulator), 0
        if isinstance(job, Job) and isinstance(job.governor, Late):
            done += 2 * len(list(islice(times, SETTLING // 2)))
        while steps := asked.recv():
            burst = list(islice(times, steps // 2))
            done += 2 * len(burst)
            asked.send((statistics.median(burst), statistics.mean(burst)))
        often = (waits(simulator) - before) / done
        asked.send(Account(share_told(job) if isinstance(job, Job) else None, often))


class Account(NamedTuple):
    """What is known of a process in the end. share: of the time, that probes took, as the report would say it.
    waits: for the device in a step, after the first ones.
    """

    share: float | None
    waits: float


def waits(simulator: simulation.Simulator | None) -> int:
    """How often the host has waited for the device so far."""
    return len(simulator.ledger.synchronisations) if simulator is not None else 0


def share_told(job: Job) -> float | None:
    """Of the probes, after the first steps, as the report would say it."""
    job.leave("bench")
    job.writer.close()
    return overhead([row for rank in read(Path(job.writer.folder)).ranks for row in later(rank.every_step)])


class Burst(NamedTuple):
    """CPU seconds of steps in a row."""

    median: float
    mean: float


class Process:
    """One that trains a model under one kind of watching, a burst at a time."""

    def __init__(self, make: Make, watch: Watching, workers: int = 0, *, is_simulated: bool = False) -> None:
        forking = get_context("fork")
        self.asking, asked = forking.Pipe()
        self.process = forking.Process(
            target=serve, args=(asked, make, watch, workers), kwargs={"is_simulated": is_simulated}
        )
        self.process.start()

    def burst(self, steps: int) -> Burst:
        self.asking.send(steps)
        return self.answer()

    def answer(self) -> Burst:
        median, mean = self.asking.recv()
        return Burst(median, mean)

    def end(self) -> Account:
        self.asking.send(0)
        account: Account = self.asking.recv()
        self.process.join()
        return account


class Pair:
    """Two that train one model together."""

    def __init__(self, make: Make, watch: Watching, folder: str) -> None:
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".store") as unused:  # one for each pair, gone again
            store = Path(unused.name).as_uri()
        self.both = [Process(shared(make, rank, store), watch) for rank in (0, 1)]

    def burst(self, steps: int) -> Burst:
        """The mean of both, which wait for each other."""
        for each in self.both:
            each.asking.send(steps)
        one, other = (each.answer() for each in self.both)
        return Burst((one.median + other.median) / 2, (one.mean + other.mean) / 2)

    def end(self) -> Account:
        for each in self.both:
            each.asking.send(0)
        accounts = [each.asking.recv() for each in self.both]
        for each in self.both:
            each.process.join()
        shares = [each.share for each in accounts if each.share is not None]
        return Account(statistics.mean(shares) if len(shares) == len(accounts) else None, 0.0)


def compare(make: Make, rounds: int, steps: int, workers: int) -> None:
    what = f"{make.__name__}, a worker" if workers else make.__name__
    by_turns(what, {name: Process(make, watch, workers) for name, watch in WATCHING.items()}, rounds, steps)


def compare_simulated(make: Make, rounds: int, steps: int) -> None:
    processes = {name: Process(make, WATCHING[name], is_simulated=True) for name in AMONG_RANKS}
    by_turns(f"{make.__name__} on the simulated accelerator", processes, rounds, steps)


def compare_ranks(make: Make, rounds: int, steps: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pairs = {name: Pair(make, WATCHING[name], folder) for name in AMONG_RANKS}
        by_turns(f"{make.__name__}, two ranks", pairs, rounds, steps)


def by_turns(what: str, processes: Mapping[str, Process | Pair], rounds: int, steps: int) -> None:
    """Prints what each kind of watching adds."""
    found: dict[str, list[Burst]] = {name: [] for name in processes}
    for number in range(rounds + 1):
        names = list(processes)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            time = processes[name].burst(steps)
            if number:  # the first round warms up
                found[name].append(time)
    accounts = {name: process.end() for name, process in processes.items()}
    plain = found.pop("nothing")
    usual = statistics.median(each.median for each in plain)
    print(f"{what}: {usual * 1e6:.0f} us a step, {rounds} rounds of {steps} steps")
    for name, bursts in found.items():
        pairs = list(zip(bursts, plain, strict=True))
        told(name, [(one.median - alone.median, one.median / alone.median) for one, alone in pairs])
        if name in IN_THE_MEAN:
            told(f"{name}, mean", [(one.mean - alone.mean, one.mean / alone.mean) for one, alone in pairs])
        if name == "a long job" and (share := accounts[name].share) is not None:
            print(f"  {'as its report says':<19} {share * usual / (1 - share) * 1e6:+8.0f} us  ({share:.1%})")
    if any(account.waits for account in accounts.values()):
        often = ", ".join(f"{name} {account.waits:.3f}" for name, account in accounts.items())
        print(f"  waits for the device a step: {often}")


def told(name: str, pairs: list[tuple[float, float]], note: str = "") -> None:
    """PAIRS: seconds added, and the ratio to the step alone."""
    added, ratio = sorted(each for each, _ in pairs), statistics.median(each for _, each in pairs)
    low, high = (edge * 1e6 for edge in interval_of_median(added))
    print(f"  {name:<19} {statistics.median(added) * 1e6:+8.0f} us  ({low:+.0f} to {high:+.0f})  x {ratio:.3f}{note}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--peers", type=Path, help="environments with the peers in them: bench/faults.py makes them")
    parser.add_argument("--only", nargs="+", choices=MODELS, default=tuple(MODELS), metavar="MODEL")
    parser.add_argument("--ranks", action="store_true", help="two ranks under DistributedDataParallel")
    parser.add_argument("--workers", action="store_const", const=1, default=0, help="a worker loads the batches")
    parser.add_argument("--sim", action="store_true", help="on the simulated accelerator")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for make in (MODELS[name] for name in options.only):
        if options.ranks:
            compare_ranks(make, options.rounds, options.steps)
            continue
        if options.sim:
            compare_simulated(make, options.rounds, options.steps)
            continue
        compare(make, options.rounds, options.steps, options.workers)
        if options.peers:
            processes = traceml(options.peers, make.__name__, options.rounds // 4, 12 * options.steps)
            told("TraceML", processes, "  (processes of their own by turns)")


if __name__ == "__main__":
    main()

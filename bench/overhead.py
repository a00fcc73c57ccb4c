"""What the probes cost a step: blocks with and without them by turns in one process, next to torch.profiler.

    python bench/overhead.py [--blocks N] [--steps N] [--peers FOLDER]

Prints, for two models, the step without probes (median of block medians), and for each kind of watching the ratio
to it and the microseconds that it adds, as the median over pairs of neighbouring blocks.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from time import process_time
from typing import Any

import torch
from peers.cost import traceml
from peers.inside.loop import tiny, transformer

from torchtriage.examine.run.job import begin
from torchtriage.triage import probes

Watching = Callable[[], AbstractContextManager[Any]]


@contextmanager
def watched(*rooms: Path) -> Iterator[None]:
    """The job package as `torchtriage run` puts it into a job."""
    with tempfile.TemporaryDirectory() as folder:
        job = begin(folder, [str(path) for path in rooms])
        try:
            yield
        finally:
            job.leave("bench")
            job.tidy()


def profiled() -> AbstractContextManager[Any]:
    watching: AbstractContextManager[Any] = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    return watching


WATCHING: dict[str, Watching] = {
    "nothing": nullcontext,
    "machinery": watched,
    "all probes": lambda: watched(*probes()),
    "torch.profiler": profiled,
    "anomaly mode": lambda: torch.autograd.set_detect_anomaly(True),
}


def block(make: Callable[[], tuple[torch.nn.Module, torch.Tensor]], watch: Watching, steps: int) -> float:
    """CPU seconds of the median step of a training loop under WATCH, its first fifth left out.

    CPU time, on one thread: what else the machine does is not counted.
    """
    torch.manual_seed(0)
    model, sample = make()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    batches = torch.utils.data.DataLoader(sample.repeat(2, *[1] * (sample.dim() - 1)), batch_size=len(sample))
    times: list[float] = []
    with watch():
        while len(times) < steps:
            began = process_time()
            for batch in batches:
                optimizer.zero_grad()
                model(batch).square().mean().backward()
                optimizer.step()
            times.append((process_time() - began) / len(batches))
    return statistics.median(times[steps // 5 :])


def compare(make: Callable[[], tuple[torch.nn.Module, torch.Tensor]], blocks: int, steps: int) -> None:
    block(make, nullcontext, steps)
    rounds = [{name: block(make, watch, steps) for name, watch in WATCHING.items()} for _ in range(blocks)]
    plain = statistics.median(each["nothing"] for each in rounds)
    print(f"{make.__name__}: {plain * 1e3:.2f} ms a step, {blocks} rounds")
    for name in list(WATCHING)[1:]:
        ratio = statistics.median(each[name] / each["nothing"] for each in rounds)
        added = statistics.median(each[name] - each["nothing"] for each in rounds)
        print(f"  {name:<15} x {ratio:.3f}  {added * 1e6:+8.0f} us")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=9)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--peers", type=Path, help="environments with the peers in them: bench/faults.py makes them")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for make in (tiny, transformer):
        compare(make, options.blocks, options.steps)
        if options.peers:
            ratio, added = traceml(options.peers, make.__name__, options.blocks, 5 * options.steps)
            print(f"  {'TraceML':<15} x {ratio:.3f}  {added * 1e6:+8.0f} us  (processes of their own by turns)")


if __name__ == "__main__":
    main()

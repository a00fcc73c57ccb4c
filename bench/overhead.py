"""What the probes cost a step: blocks with and without them by turns in one process, next to torch.profiler.

    python bench/overhead.py [--blocks N] [--steps N] [--peers FOLDER]

Prints, for three models, the step without probes (median over blocks), and for each kind of watching the ratio to it
and the microseconds that it adds, as the median over pairs of neighbouring blocks with the 95 % interval of that
median. The first steps, which are all watched, are left out: a long job has none of them.
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
from peers.inside.loop import small, tiny, transformer

from torchtriage.examine.run.job import begin
from torchtriage.examine.run.job.governor import FIRST, Governor
from torchtriage.examine.run.series import interval_of_median
from torchtriage.triage import probes

Watching = Callable[[], AbstractContextManager[Any]]


class Always(Governor):
    """Watches every step, whatever it costs."""

    def ended(self, _nanoseconds: int) -> bool:
        self.steps += 1
        return False


@contextmanager
def watched(*rooms: Path, always: bool = False) -> Iterator[None]:
    """The job package as `torchtriage run` puts it into a job."""
    with tempfile.TemporaryDirectory() as folder:
        job = begin(folder, [str(path) for path in rooms])
        if always:
            job.governor.__class__ = Always
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
    "at every step": lambda: watched(*probes(), always=True),
    "torch.profiler": profiled,
    "anomaly mode": lambda: torch.autograd.set_detect_anomaly(True),
}


def block(make: Callable[[], tuple[torch.nn.Module, torch.Tensor]], watch: Watching, steps: int) -> float:
    """CPU seconds of a step of a training loop under WATCH, over STEPS steps after the first ones.

    CPU time, on one thread: what else the machine does is counted as far as it slows a core down.
    """
    torch.manual_seed(0)
    model, sample = make()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    batches = torch.utils.data.DataLoader(sample.repeat(2, *[1] * (sample.dim() - 1)), batch_size=len(sample))
    began = 0.0
    with watch():
        for number in range((FIRST + steps) // 2):
            if number == FIRST // 2:
                began = process_time()
            for batch in batches:
                optimizer.zero_grad()
                model(batch).square().mean().backward()
                optimizer.step()
        return (process_time() - began) / steps


def compare(make: Callable[[], tuple[torch.nn.Module, torch.Tensor]], blocks: int, steps: int) -> None:
    block(make, nullcontext, steps)
    rounds = [{name: block(make, watch, steps) for name, watch in WATCHING.items()} for _ in range(blocks)]
    plain = statistics.median(each["nothing"] for each in rounds)
    print(f"{make.__name__}: {plain * 1e3:.2f} ms a step, {blocks} rounds")
    for name in list(WATCHING)[1:]:
        ratio = statistics.median(each[name] / each["nothing"] for each in rounds)
        added = sorted(each[name] - each["nothing"] for each in rounds)
        low, high = (edge * 1e6 for edge in interval_of_median(added))
        print(f"  {name:<15} x {ratio:.3f}  {statistics.median(added) * 1e6:+8.0f} us  ({low:+.0f} to {high:+.0f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=9)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--peers", type=Path, help="environments with the peers in them: bench/faults.py makes them")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for make in (tiny, small, transformer):
        compare(make, options.blocks, options.steps)
        if options.peers:
            ratio, added = traceml(options.peers, make.__name__, options.blocks, options.steps)
            print(f"  {'TraceML':<15} x {ratio:.3f}  {added * 1e6:+8.0f} us  (processes of their own by turns)")


if __name__ == "__main__":
    main()

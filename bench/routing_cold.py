"""What `torchtriage ask` costs: as a cold process beyond its own dependencies, and per query once warm.

The floor of (a) is a process that imports click and msgspec and does nothing; both are started in turn, so that
whatever else the machine does meets both alike. Byte code is compiled beforehand, as it is after an installation.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from statistics import median, quantiles

from torchtriage.catalog.scenarios import scenarios
from torchtriage.routing.listen import listen
from torchtriage.routing.order import order

QUERY = "NaN loss with AMP on 8 GPUs, my boss says lower the learning rate"
COLD_BAR, WARM_BAR = 40.0, 1.0
ROUNDS = 25


def started(command: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    """Milliseconds of one process: from start to end, and of processor time (which a busy machine stretches less)."""
    before, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], env=environment, check=True, stdout=subprocess.DEVNULL)
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    return (time.perf_counter() - before) * 1e3, cpu * 1e3


def cold() -> list[tuple[float, float]]:
    """Median milliseconds of the floor and of `ask` over ROUNDS alternate starts: by the clock, then of processor."""
    idle, asking = ["-c", "import click, msgspec"], ["-m", "torchtriage", "ask", QUERY]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_CACHE_HOME": folder, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for command in (idle, asking):
            started(command, environment)
        rounds = [(started(idle, environment), started(asking, environment)) for _ in range(ROUNDS)]
    return [(median(floor[at] for floor, _ in rounds), median(ask[at] for _, ask in rounds)) for at in (0, 1)]


def warm() -> tuple[float, float]:
    """Median and 99th percentile of milliseconds of processor time per query, over all scenarios of the rooms."""
    queries = [each.text for each in scenarios()]
    for query in queries:
        order(listen(query))
    spent = []
    for query in queries * 5:
        before = time.thread_time()
        order(listen(query))
        spent.append((time.thread_time() - before) * 1e3)
    return median(spent), quantiles(spent, n=100)[98]


def main() -> int:
    """Prints both figures against their bars; 1 where one is missed."""
    (floor, ask), (floor_cpu, ask_cpu) = cold()
    middle, late = warm()
    print(f"cold: ask {ask:.1f} ms - floor {floor:.1f} ms = {ask - floor:.1f} ms (bar {COLD_BAR:.0f} ms)")
    print(f"      processor time {ask_cpu:.1f} ms - {floor_cpu:.1f} ms = {ask_cpu - floor_cpu:.1f} ms")
    print(f"warm: median {middle:.3f} ms, p99 {late:.3f} ms per query (bar {WARM_BAR:.0f} ms)")
    return int(ask - floor > COLD_BAR or middle > WARM_BAR)


if __name__ == "__main__":
    raise SystemExit(main())

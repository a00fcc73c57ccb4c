"""What very many ranks cost, and whether they end in one verdict.

    python bench/scale.py [--ranks N] [--files N] [--events N] [--times N] [--only-map]

Verdicts: jobs of N ranks on machines of eight with one planted cause each (bench/traced/cluster.py). Map: traces of so
many events in Kineto's layout, by one worker and by two, of this machine's processes and of an embedded Ray, best of
--times, in turns; beside it what two busy processes do on this machine. Reduce: 1,000 and 10,000 summaries,
small ones and the largest that a trace can give, in a process of its own. The last lines are what docs/scale.md is
derived from.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace
from traced.cluster import clusters, made
from traces import long_trace

from torchtriage.examine.artefact import trace
from torchtriage.examine.artefact.engines import Engine, Work, mapped
from torchtriage.examine.artefact.trace.rank import (
    LETTERS,
    MEETINGS,
    ROWS,
    STEPS,
    KernelRow,
    OperatorRow,
    RankSummary,
    ShapeRow,
    WaitRow,
)
from torchtriage.examine.artefact.trace.shared import shared
from torchtriage.examine.detector import perform
from torchtriage.triage import detectors, read

BAR = 1.7
WORK = Work(trace.SUMMED, RankSummary)
BUSY = "import sys, time; begun = time.process_time()\nwhile time.process_time() < begun + 0.5: pass"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=1_000, help="ranks of the planted jobs, a multiple of eight")
    parser.add_argument("--files", type=int, default=8, help="long traces")
    parser.add_argument("--events", type=int, default=200_000, help="events of a long trace")
    parser.add_argument("--times", type=int, default=8, help="how often each is timed")
    parser.add_argument("--only-map", action="store_true", help="only the workers")
    parser.add_argument("--reduce", type=int, nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def verdicts(world: int, folder: Path) -> None:
    right = count = 0
    slowest, stored = 0.0, 0
    for job in clusters(world):
        paths = made(job, folder / str(count))
        stored = max(stored, sum(path.stat().st_size for path in paths) // len(paths))
        begun = time.perf_counter()
        case = read([folder / str(count)])
        slowest = max(slowest, time.perf_counter() - begun)
        rows = [item for finding in case.findings for item in finding.evidence]
        found = {finding.fault.slug for finding in case.findings}
        bound = {verdict.verdict for verdict in case.verdicts}
        is_told = all(words in row.fact for row in rows for words in job.says) and len(rows) == len(job.faults)
        is_right = found == set(job.faults) and bound == set(job.verdicts) and is_told
        is_right &= job.place is None or rows[0].place.rank == job.place
        print(f"  {'as planted' if is_right else 'WRONG'}: {job.name}{f': {rows[0].fact[:110]} …' if rows else ''}")
        right, count = right + is_right, count + 1
    print(
        f"verdicts: {right} of {count} jobs of {world:,} ranks as planted, in one row each; traces of "
        f"{stored / 1e3:.0f} kB, {slowest:.1f} s at most to read all of one job"
    )


def speed(folder: Path, given: argparse.Namespace) -> float:
    """Seconds of a core for a GB."""
    path = long_trace(folder, given.events)
    paths = [str(folder / f"rank{number}.json") for number in range(given.files)]
    for each in paths:
        os.link(path, each)
    size = path.stat().st_size
    print(f"map: {given.files} traces of {size / 1e6:.0f} MB, {given.events:,} events each, best of {given.times}")
    core = _core(path, given.times) / size * 1e9
    packed = path.with_suffix(".json.gz")
    packed.write_bytes(gzip.compress(path.read_bytes(), 6))
    unpacking, times = _core(packed, given.times) / size * 1e9, size / packed.stat().st_size
    print(f"  one core: {core:.1f} s for a GB; gzipped, {times:.0f} times smaller, {unpacking:.1f} s")
    _compared("local", paths, given.times)
    if find_spec("ray") is None:
        print("  ray is not installed")
        return core
    with _ray():
        mapped(WORK, paths, Engine("ray", workers=2))  # its workers start
        _compared("ray", paths, given.times)
    return core


def _core(path: Path, times: int) -> float:
    least = float("inf")
    for _ in range(times):
        begun = time.process_time()
        trace.summary(str(path))
        least = min(least, time.process_time() - begun)
    return least


def _busy(count: int) -> None:
    for each in [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]:
        each.wait()


def _compared(engine: str, paths: Sequence[str], times: int) -> None:
    """Two workers against one, beside as much plain work of two processes and one, all in turns."""
    best = {1: float("inf"), 2: float("inf")}
    busy = dict(best)
    for _ in range(times):
        for workers in best:
            best[workers] = min(best[workers], _seconds(partial(mapped, WORK, paths, Engine(engine, workers=workers))))
            busy[workers] = min(busy[workers], _seconds(partial(_busy, workers)))
    bar = f" (bar {BAR})" if engine == "ray" else ""
    print(
        f"  {engine}: one worker {best[1]:.2f} s, two {best[2]:.2f} s: {best[1] / best[2]:.2f} times as fast{bar}; two "
        f"busy processes of this machine meanwhile {2 * busy[1] / busy[2]:.2f} times as much as one"
    )


def _seconds(of: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    of()
    return time.perf_counter() - begun


@contextmanager
def _ray() -> Iterator[None]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray: Any = import_module("ray")
    ray.init(address="local", num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    try:
        yield
    finally:
        ray.shutdown()


def reduced(count: int, largest: int) -> None:
    """Prints what one process takes to judge COUNT summaries; LARGEST: whether they are as large as one may be."""
    with tempfile.TemporaryDirectory() as name:
        job = next(job for job in clusters(64) if job.name == "slow host")
        few = [trace.summary(str(path)) for path in made(job, Path(name))]
    late = min(job.late) // 8
    stored = [_stored(few[(late if number // 8 == 7 else 0) * 8 + number % 8], number, count, largest)
              for number in range(count)]  # fmt: skip
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak of memory counts from now on
    before, begun = _memory(), time.process_time()
    ranks = [shared(msgspec.msgpack.decode(each, type=RankSummary), count) for each in stored]
    noun = trace.together(ranks)
    seen = list(perform(tuple(detectors("readings", "torchtriage.examine.artefact.trace")), noun))
    figures = len(msgspec.json.encode(trace.measurements(noun)))
    spent, memory = time.process_time() - begun, _memory() - before
    said = [item for outcome in seen for item in getattr(outcome, "evidence", ()) if item.detector == "trace/straggler"]
    if len(said) != 1 or "all 8 ranks of host node7" not in said[0].fact:
        raise SystemExit(f"the slow host is not found: {said}")
    print(
        f"  {count:,} summaries of {sum(map(len, stored)) / count / 1e3:.1f} kB: {spent:.1f} s of a core, "
        f"{memory / 1e6:.0f} MB of memory, figures of {figures / 1e6:.1f} MB; the slow host is found"
    )


def _stored(told: RankSummary, number: int, world: int, largest: int) -> bytes:
    """TOLD as that of another rank, in bytes."""
    host = number // 8
    met = tuple(replace(each, group=f"machine{host}" if "machine" in each.group else each.group) for each in told.met)
    told = replace(told, path="", rank=number, world=world, host=f"node{host}", met=met)
    return msgspec.msgpack.encode(_largest(told) if largest else told)


def _largest(told: RankSummary) -> RankSummary:
    """With as many steps, collectives and rows of as long names as a summary keeps."""
    names = [f"{number} {'x' * LETTERS}"[:LETTERS] for number in range(ROWS)]
    met = [
        replace(each, sequence=each.sequence * 100 + nth, nth=nth, begin=each.begin + nth, end=each.end + nth)
        for each in told.met
        for nth in range(-(-MEETINGS // len(told.met)))
    ]
    steps = [replace(told.steps[at % len(told.steps)], number=told.steps[0].number + at) for at in range(STEPS)]
    return replace(
        told,
        met=tuple(met[:MEETINGS]),
        steps=tuple(steps),
        kernels=tuple(KernelRow(name, 10**6, 10**12, 10**6) for name in names),
        operators=tuple(OperatorRow(name, 10**6, 10**12, 10**12) for name in names),
        shapes=tuple(ShapeRow(name, name * 2, name * 2, 10**6, 10**9, name) for name in names),
        waits=tuple(WaitRow(name, name, 10**6, 10**12, name, 1000, name) for name in names),
    )


def _memory() -> int:
    """The most that this process has had, bytes."""
    told = Path("/proc/self/status").read_text(encoding="ascii").partition("VmHWM:")[2]
    return int(told.split()[0]) * 1024


def sizes(path: Path) -> float:
    told = trace.summary(str(path))
    packed, plain = len(msgspec.msgpack.encode(told)), len(msgspec.json.encode(told))
    stored = path.stat().st_size
    print(f"summary: {packed / 1e3:.1f} kB on its way ({plain / 1e3:.1f} kB as JSON) of {stored / 1e6:.0f} MB of trace")
    return packed


def main() -> None:
    given = options()
    if given.reduce:
        reduced(*given.reduce)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.only_map:
            speed(folder, given)
            return
        verdicts(given.ranks, folder / "planted")
        core = speed(folder, given)
        packed = sizes(folder / "rank0.json")
    print("reduce:", flush=True)
    for largest in (0, 1):
        for count in (1_000, 10_000):
            subprocess.run([sys.executable, __file__, "--reduce", str(count), str(largest)], check=True)
    hours, moved = core * 10_000 / 3600, packed * 10_000 / 1e6
    print(f"10,000 ranks of 1 GB: {hours:.1f} core hours to map, {moved:.0f} MB to where they are reduced")


if __name__ == "__main__":
    main()

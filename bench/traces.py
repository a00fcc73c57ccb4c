"""Whether traces are read rightly, and how fast: jobs with a planted cause, orjson, and HTA beside them.

    python bench/traces.py [--events N] [--fuzz N] [--hta PYTHON]

Verdicts and every phase of every step against the truth of the simulation (bench/traced). Then a trace of N events in
Kineto's layout: seconds of CPU, best of three, for the first word and for all of the analysis, as a part of what
`orjson.loads` of the same bytes takes (garbage collection off, its best case), and the peak of memory. With the python
of an environment that has HolisticTraceAnalysis, eight ranks on two processes beside its load and analyses.
"""

from __future__ import annotations

import argparse
import gc
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

from traced.changed import changed
from traced.jobs import Job, Plan, jobs, made
from traced.simulated import truth

from torchtriage.examine.artefact import trace
from torchtriage.examine.artefact.trace.device import IDLE
from torchtriage.examine.artefact.trace.rank import RankSummary
from torchtriage.specialists.distributed_training_strategies.readings.lateness import CAUSES
from torchtriage.triage import read

FIRST, ALL, MEMORY, PEER = 0.35, 1.0, 1.3, 25.0
LAYERS = 960
PER_STEP = 26 * LAYERS  # events
HTA = """
import sys, time
begun = time.perf_counter()
from hta.trace_analysis import TraceAnalysis
t = TraceAnalysis(trace_dir=sys.argv[1])
t.get_temporal_breakdown(visualize=False)
t.get_idle_time_breakdown(visualize=False)
t.get_gpu_kernel_breakdown(visualize=False)
t.get_comm_comp_overlap(visualize=False)
print("seconds", time.perf_counter() - begun)
"""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000, help="events of the long trace")
    parser.add_argument("--fuzz", type=int, default=2_000, help="changed traces to be read")
    parser.add_argument("--hta", help="the python of an environment with HolisticTraceAnalysis")
    return parser.parse_args()


def verdicts(folder: Path) -> None:
    """Every job by its name, and those of which something else was said than was planted."""
    right, count, apart = 0, 0, 0
    for job in jobs():
        paths, ranks = made(job, folder / f"{count}")
        case = read([folder / f"{count}"])
        told = trace.read([str(path) for path in paths])
        said = {finding.fault.slug for finding in case.findings}, {verdict.verdict for verdict in case.verdicts}
        wanted = set(job.faults), set(job.verdicts)
        blamed = [item for finding in case.findings if finding.fault.slug == "straggler" for item in finding.evidence]
        placed = [(job.plan.late, CAUSES[job.plan.phase])] if "straggler" in job.faults else []
        found = [(item.place.rank, cause) for item in blamed for cause in CAUSES.values() if cause in item.fact]
        is_right = said == wanted and found == placed
        if not is_right:
            print(f"  {job.name}, {job.world} ranks: {said}, {found}; planted {wanted}, {placed}")
        apart = max(apart, *(_apart(truth(rank), each) for rank, each in zip(ranks, told.ranks, strict=True)))
        right, count = right + is_right, count + 1
    print(f"verdicts: {right} of {count} jobs as planted; phases at most {apart} ns from the truth")


def _apart(true: list[dict[str, int]], told: RankSummary) -> int:
    worst = 0
    for step, found in zip(true, told.steps, strict=True):
        idle = sum(found.spent[cause] for cause in IDLE)
        ones = (abs(found.spent[phase] - step[phase]) for phase in ("compute", "communication", "memcpy"))
        worst = max(worst, abs(idle - step["idle"]), *ones)
    return worst


def long_trace(folder: Path, events: int) -> Path:
    """A trace of about so many EVENTS, with the mixture of a real one."""
    job = Job("long", Plan(items=1), 1, 0, frozenset(), frozenset(), steps=max(events // PER_STEP, 2), wrapped=True)
    job = replace(job, layers=LAYERS)
    paths, _ = made(job, folder / "long", "kineto")
    return paths[0]


def speed(path: Path) -> None:
    if find_spec("orjson") is None:
        print("speed: orjson is not installed, so there is nothing to compare with")
        return
    import orjson

    data = path.read_bytes()
    events = data.count(b'"ph"')
    gc.disable()
    parsed = best(lambda: orjson.loads(data))
    gc.enable()
    first, all_of_it = best(lambda: trace.glance(str(path))), best(lambda: trace.summary(str(path)))
    print(f"speed: {len(data) / 1e6:.0f} MB, {events:,} events; orjson.loads {parsed:.2f} s of CPU")
    print(f"  first word {first:.2f} s, {first / parsed:.2f} of it (bar {FIRST})")
    print(f"  all of it  {all_of_it:.2f} s, {all_of_it / parsed:.2f} of it (bar {ALL})")


def best(made_of: Callable[[], Any], times: int = 3) -> float:
    least = float("inf")
    for _ in range(times):
        begun = time.process_time()
        made_of()
        least = min(least, time.process_time() - begun)
    return least


def memory(path: Path) -> None:
    code = f"from torchtriage.examine.artefact import trace; trace.summary({str(path)!r}); "
    code += "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    peak = int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout) * 1024
    print(f"memory: peak {peak / 1e6:.0f} MB, {peak / path.stat().st_size:.2f} of the file (bar {MEMORY})")


def beside(path: Path, folder: Path, python: str | None) -> None:
    """Eight ranks of the same events on two processes."""
    text, ranks = path.read_text(), folder / "ranks"
    ranks.mkdir()
    for number in range(8):
        (ranks / f"rank{number}.json").write_text(text.replace('"rank": 0', f'"rank": {number}', 1))
    own = [_pooled(look, name, ranks) for look, name in ((trace.glance, "first word"), (trace.summary, "all of it"))]
    if python is None:
        print("  HTA is absent: name the python of an environment that has it by --hta")
        return
    before = children()
    done = subprocess.run([python, "-c", HTA, str(ranks)], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"  HTA fails: {done.stderr.strip().splitlines()[-1]}")
        return
    wall, cpu = float(done.stdout.split("seconds ")[-1]), children() - before
    times = " and ".join(f"{wall / ours[0]:.0f} ({cpu / ours[1]:.0f} of CPU)" for ours in own)
    print(f"  HTA: {wall:.1f} s, {cpu:.1f} s of CPU: {times} times as long (bar {PEER:.0f})")


def _pooled(look: Callable[[str], Any], name: str, ranks: Path) -> tuple[float, float]:
    """Seconds, and those of CPU."""
    before, begun = children(), time.perf_counter()
    with ProcessPoolExecutor(2) as pool:
        told = list(pool.map(look, [str(each) for each in sorted(ranks.iterdir())]))
    if isinstance(told[0], trace.RankSummary):
        trace.together(told)
    wall, cpu = time.perf_counter() - begun, children() - before
    print(f"eight ranks on two processes, {name}: {wall:.1f} s, {cpu:.1f} s of CPU")
    return wall, cpu


def children() -> float:
    """Seconds of CPU that ended children have taken."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def fuzz(folder: Path, count: int) -> None:
    """Changed traces; a crash ends the program."""
    chance, path = Random(0), folder / "changed.json"  # noqa: S311
    seeds = [made(job, folder / "seed", layout)[0][0].read_bytes()[:40_000] for job, layout in _seeds()]
    slowest = 0.0
    for _ in range(count):
        path.write_bytes(changed(chance.choice(seeds), chance))
        begun = time.process_time()
        for look in (trace.summary, trace.glance):
            try:
                look(str(path))
            except trace.Unreadable:
                continue
        slowest = max(slowest, time.process_time() - begun)
    print(f"fuzz: {count:,} changed traces read, no crash; the slowest took {slowest:.2f} s of CPU")


def _seeds() -> list[tuple[Job, str]]:
    small = Job("small", Plan(items=1), 2, 0, frozenset(), frozenset(), steps=2)
    return [(small, layout) for layout in ("kineto", "dense", "shuffled", "late", "list")]


def main() -> None:
    given = options()
    with tempfile.TemporaryDirectory() as made_in:
        folder = Path(made_in)
        verdicts(folder / "jobs")
        fuzz(folder, given.fuzz)
        path = long_trace(folder, given.events)
        speed(path)
        memory(path)
        beside(path, folder, given.hta)


if __name__ == "__main__":
    main()

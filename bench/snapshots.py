"""Reading a CUDA memory snapshot against plain unpickling of the same file; and pickles with something broken in them.

    python bench/snapshots.py [--entries N] [--frames N] [--rounds N]
    python bench/snapshots.py --fuzz N

The snapshots are those of an allocator with known truth (tests/made/allocator.py): the peak that is read must be its
own, and the planted leak must be found at its line. Each time is that of a process of its own, in turns; beside
pickle.load as it stands is pickle.load without the garbage collector, which is what most of its time goes to.
"""

from __future__ import annotations

import argparse
import json
import pickle
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

MADE = Path(__file__).parent.parent / "tests/made"
sys.path.insert(0, str(MADE))

from allocator import KEPT, MIB, Allocator, Job, stack  # noqa: E402
from mutated import mutations  # noqa: E402 - of the tests

TIMED = "import sys, time; a = time.perf_counter(); {work}; print(time.perf_counter() - a)"
WAYS = {
    "pickle.load": "import pickle; d = pickle.load(open(sys.argv[1], 'rb'))",
    "pickle.load without gc": "import gc, pickle; gc.disable(); d = pickle.load(open(sys.argv[1], 'rb'))",
    "read": "from torchtriage.examine.artefact.snapshot import read; d = read(sys.argv[1:])",
    "read and judge": "from torchtriage.triage import read; d = read(sys.argv[1:])",
}


def snapshot(entries: int, frames: int) -> Allocator:
    """A leaking job with ENTRIES entries, whose stacks have FRAMES frames more than they need."""
    deep = stack(*(f"/env/lib/python3.11/site-packages/launcher/run.py:{n}:call" for n in range(frames)))
    job = Job(_Deep(deep)).build()
    while len(job.device.entries) < entries:
        job.step()
        job.device.malloc(MIB // 16, KEPT, "kept")
    return job.device


class _Deep(Allocator):
    """Each entry has a list of its own, of frames that all share: so torch writes them."""

    def __init__(self, deep: list[dict[str, Any]]) -> None:
        super().__init__()
        self._deep = deep

    def _note(self, action: str, addr: int | None, size: int, frames: list[dict[str, Any]]) -> dict[str, Any]:
        return super()._note(action, addr, size, [*frames, *self._deep])


def timed(entries: int, frames: int, rounds: int) -> None:
    device = snapshot(entries, frames)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.pickle"
        path.write_bytes(pickle.dumps(device.snapshot()))
        print(f"{len(device.entries):,} entries, stacks of {frames + 6} frames, {path.stat().st_size / 1e6:.0f} MB")
        _truth(path, device)
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way, work in WAYS.items():
                seconds[way].append(_seconds(work, path))
    for way, each in seconds.items():
        pairs = zip(each, seconds["pickle.load"], seconds["pickle.load without gc"], strict=True)
        ratios = [(own / plain, own / quick) for own, plain, quick in pairs]
        first, second = (statistics.median(column) for column in zip(*ratios, strict=True))
        told = f"{first:.2f} × pickle.load, {second:.2f} × without gc"
        print(f"{way:24} {statistics.median(each):6.2f} s   {told}   (median of {rounds})")
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(f"largest process {most / 1e6:.0f} MB")


def _seconds(work: str, path: Path) -> float:
    command = [sys.executable, "-c", TIMED.format(work=work), str(path)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _truth(path: Path, device: Allocator) -> None:
    from torchtriage.triage import read

    case = read([path])
    used = peak = 0
    for entry in device.entries:
        used += {"alloc": 1, "free_completed": -1}.get(entry["action"], 0) * entry["size"]
        peak = max(peak, used)
    told = case.measurements["snapshot"]["devices"][0]
    lines = [item.place.line for found in case.findings for item in found.evidence]
    slugs = [found.fault.slug for found in case.findings]
    print(f"peak {told['peak']:,} of {peak:,} bytes, {slugs} at lines {lines} (planted: memory-growth at 46)")


def fuzzed(count: int) -> None:
    """COUNT mutations for each reader; each ends in an answer, and nothing of them is executed."""
    from torchtriage.examine.artefact import flight
    from torchtriage.examine.artefact import snapshot as snapshots

    with tempfile.TemporaryDirectory() as folder:
        harm = Path(folder) / "harm"
        job = Job(Allocator(), layers=2).build()
        job.step()
        for name, reader, plain in (
            ("snapshots", snapshots.read, job.device.snapshot()),
            ("dumps", flight.read, _dump()),
        ):
            hostile = pickle.dumps([_Payload(harm), plain])
            texts = [json.dumps(plain).encode()] if reader is flight.read else []
            seeds = [pickle.dumps(plain, 2), pickle.dumps(plain, 4), hostile, *texts]
            print(f"{name}: {_fuzzed(Path(folder), reader, seeds, count)}; executed: {harm.exists()}")


def _fuzzed(folder: Path, reader: Any, seeds: list[bytes], count: int) -> str:
    ends: Counter[str] = Counter()
    began = time.perf_counter()
    for first in range(0, count, 1000):
        paths = []
        for number, data in enumerate(mutations(seeds, min(1000, count - first), seed=first)):
            (folder / f"dump{number}").write_bytes(data)
            paths.append(str(folder / f"dump{number}"))
        noun = reader(paths)
        whys = [each.why for each in noun.inconclusive if each.detector.endswith("/read")]
        ends["read"] += len(paths) - len(whys)
        ends["ended by a signal or a limit"] += sum("signal" in why or "takes more" in why for why in whys)
        ends["refused"] += len(whys)
    seconds = time.perf_counter() - began
    return f"{count:,} mutations in {seconds:.0f} s: {dict(ends)}"


class _Payload:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


def _dump() -> dict[str, Any]:
    frames = [{"filename": "/job/train.py", "line": 20, "name": "step"}]
    entries = [
        {
            "record_id": n, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": n, "p2p_seq_id": 0,
            "op_id": n, "profiling_name": "nccl:all_reduce", "time_created_ns": 10**18 + n, "input_sizes": [[8]],
            "input_dtypes": ["Float"], "output_sizes": [[8]], "output_dtypes": ["Float"], "state": "completed",
            "retired": True, "timeout_ms": 600000, "is_p2p": False, "frames": frames,
        }
        for n in range(1, 20)
    ]  # fmt: skip
    group = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}
    return {"version": "2.10", "pg_config": group, "pg_status": {}, "entries": entries}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--frames", type=int, default=14)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fuzz", type=int, default=0)
    told = parser.parse_args()
    fuzzed(told.fuzz) if told.fuzz else timed(told.entries, told.frames, told.rounds)


if __name__ == "__main__":
    main()

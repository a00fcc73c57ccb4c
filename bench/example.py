"""How often `torchtriage run` says each planted fault of the README's example while other processes take the CPUs.

    python bench/example.py [--runs N] [--busy N] [--cores N] [EXAMPLE]

The example is run N times (20) on two cores, beside four processes that never stop computing. Printed are the load
averages before and after, and for each expected finding in how many runs it was said, with the 95 % interval of that
share (Wilson) and, where the finding has a measure, the range of the near ends of its intervals over the runs, which
are what its bound is held against. The bar is all of them in every run, and no other finding: else it ends with 1.
--busy 0 is the machine as it is. The busy processes end with this one, however it ends.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from corpus import share

HOME = Path(__file__).resolve().parent.parent
EXAMPLE = HOME / "examples" / "slow_and_unstable.py"
EXPECTED = ("input-bound", "clip-before-unscale", "non-finite-origin", "graph-retained")
PATIENCE = 900  # seconds for one run
# It ends by itself when its parent is gone, so that no kill of this command leaves one behind.
COMPUTING = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    sum(range(100_000))\n"


@contextmanager
def busy(number: int) -> Iterator[None]:
    """NUMBER processes that compute as long as the block runs."""
    started = [subprocess.Popen([sys.executable, "-c", COMPUTING, str(os.getpid())]) for _ in range(number)]
    try:
        yield
    finally:
        for each in started:
            each.kill()
        for each in started:
            each.wait()


def said(example: Path) -> dict[str, dict[str, Any]]:
    """The findings of one run of EXAMPLE, by their faults; none of a run that left no case."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "torchtriage", "run", "--out", f"{folder}/run", "--", str(example)]
        environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=PATIENCE, check=False)
        left = Path(folder, "run", "case.json")
        case = json.loads(left.read_text(encoding="utf-8")) if left.exists() else {"findings": []}
    return {finding["fault"]: finding for finding in case["findings"]}


def near_end(finding: dict[str, Any]) -> float | None:
    """The low end of the interval that the first evidence of FINDING has; None for a fact without one."""
    spread = finding["evidence"][0].get("spread")
    return float(spread[0]) if spread else None


def load() -> str:
    return " ".join(f"{each:.1f}" for each in os.getloadavg())


def told(times: Counter[str], ends: dict[str, list[float]], runs: int) -> Iterator[str]:
    for fault in (*EXPECTED, *sorted(times.keys() - set(EXPECTED))):
        measure = f"  near end {min(ends[fault]):.2f} to {max(ends[fault]):.2f}" if ends[fault] else ""
        unplanned = "" if fault in EXPECTED else "  (not planted)"
        yield f"  {fault:<24}{share(times[fault], runs)}{measure}{unplanned}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("example", nargs="?", type=Path, default=EXAMPLE)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--busy", type=int, default=4)
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[: options.cores]
    os.sched_setaffinity(0, cores)  # inherited by all that is started here
    times: Counter[str] = Counter()
    ends: dict[str, list[float]] = defaultdict(list)
    before = load()
    with busy(options.busy):
        for number in range(1, options.runs + 1):
            found = said(options.example.resolve())
            times.update(found.keys())
            missed = ", ".join(fault for fault in EXPECTED if fault not in found) or "none"
            print(f"run {number}: load {load()}, missed: {missed}", file=sys.stderr, flush=True)
            for fault, finding in found.items():
                if (end := near_end(finding)) is not None:
                    ends[fault].append(end)
    print(f"{options.example.name}: {options.runs} runs on {len(cores)} cores beside {options.busy} busy processes")
    print(f"  load average (1, 5, 15 minutes) {before} before, {load()} after")
    print(*told(times, ends, options.runs), sep="\n")
    return int(dict(times) != dict.fromkeys(EXPECTED, options.runs))


if __name__ == "__main__":
    sys.exit(main())

"""How many jobs compute the same to the last bit under the probes: all numbers of all modules, and the generators.

    python bench/unchanged.py [--jobs N] [--ranks]

The jobs are planted scripts of tests/cases/run, healthy and faulty, or with --ranks those of tests/cases/ranks, evenly
chosen. Each runs twice by itself, which tells whether it repeats itself at all, and once under `torchtriage run`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from corpus import Job, read
from processes import NAME, ended

INSIDE = Path(__file__).parent / "peers/inside/digest.py"


def digests(job: Job, *launcher: str | Path) -> tuple[str, ...]:
    """What the processes of JOB have computed, where LAUNCHER stands before Python; nothing of one that failed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / NAME).write_text(job.script, encoding="utf-8")
        ranks = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(job.ranks)) if job.ranks else ()
        told = folder / "digests.txt"
        before = [part if part != "OUT" else folder / "out" for part in launcher]
        ended(("env", f"DIGEST={told}", *before, sys.executable, *ranks, INSIDE, NAME), folder)
        return tuple(sorted(told.read_text(encoding="utf-8").splitlines())) if told.exists() else ()


def verdict(job: Job) -> str:
    alone, again = digests(job), digests(job)
    if not alone:
        return "ends before it can be compared"
    if alone != again:
        return "does not repeat itself"
    watched = digests(job, sys.executable, "-m", "torchtriage", "run", "--out", "OUT", "--")
    return "the same" if watched == alone else "DIFFERENT under the probes"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=40)
    parser.add_argument("--ranks", action="store_const", const="ranks", default="run", dest="kind")
    options = parser.parse_args()
    every = [job for job in read([], options.kind) if not job.exit and not job.hang]
    chosen = every[:: max(1, len(every) // options.jobs)][: options.jobs]
    counts: Counter[str] = Counter()
    for job in chosen:
        said = verdict(job)
        counts[said] += 1
        if said != "the same":
            print(f"  {job.id}: {said}", flush=True)
    for said, number in counts.most_common():
        print(f"{said}: {number} of {len(chosen)}")


if __name__ == "__main__":
    main()

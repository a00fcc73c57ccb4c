"""How long `torchtriage read` takes for one small file of each kind, from its start to its end; and broken ones.

    python bench/cold.py [--rounds N]
    python bench/cold.py --fuzz N

Wall time of whole processes, kinds by turns, the least of the rounds, beside `torchtriage --version`. With --fuzz the
logs and curves of tests/cases/artefacts are broken in N ways each and read in this process (bench/traces.py,
bench/snapshots.py and bench/checkpoints.py do so for their kinds): no reader and no detector may fail.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MADE = Path(__file__).parent.parent / "tests"
CASES = MADE / "cases/artefacts"
GOAL = 0.3
FILES = {
    "a log": ["error.log"],
    "a trace": ["input.json.gz"],
    "a snapshot": ["snapshot.pickle.gz"],
    "curves": ["diverges.tfevents"],
    "a checkpoint": ["resume.pt"],
    "dumps": ["dumps"],
}
SEEDS = {"logs": ("error.log", "kill.log", "tee.log", "nan.log"), "curves": ("diverges.tfevents", "diverges.csv")}


def seconds(*words: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "torchtriage", *words], capture_output=True, check=False)
    return time.perf_counter() - began


def timed(rounds: int) -> None:
    asked = {"--version": ["--version"]}
    asked |= {kind: ["read", *(str(CASES / name) for name in names)] for kind, names in FILES.items()}
    least = dict.fromkeys(asked, float("inf"))
    for _ in range(rounds):
        for kind, words in asked.items():
            least[kind] = min(least[kind], seconds(*words))
    for kind, spent in least.items():
        print(f"{kind}: {spent:.2f} s" + (f" (goal {GOAL})" if kind in FILES else ""))


def fuzzed(count: int) -> bool:
    """COUNT mutations for each reader; whether each ended in an answer of every detector."""
    from torchtriage.examine.detector import perform
    from torchtriage.triage import detectors

    sys.path.insert(0, str(MADE / "made"))
    mutations = importlib.import_module("mutated").mutations
    failed = 0
    for kind, names in SEEDS.items():
        reader = importlib.import_module(f"torchtriage.examine.artefact.{kind}")
        looks = tuple(detectors("readings", f"examine.artefact.{kind}"))
        seeds = [(CASES / name).read_bytes()[:3000] for name in names]
        worst = 0.0
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "x")
            for data in mutations(seeds, count):
                path.write_bytes(data)
                began = time.perf_counter()
                outcomes = perform(looks, reader.read([str(path)]))
                worst = max(worst, time.perf_counter() - began)
                failed += sum("the detector failed" in getattr(each, "why", "") for each in outcomes)
        print(f"{kind}: {count:,} mutations, longest {worst:.2f} s, detectors that failed: {failed}")
    return not failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--fuzz", type=int, default=0)
    given = parser.parse_args()
    if given.fuzz:
        sys.exit(0 if fuzzed(given.fuzz) else 1)
    timed(given.rounds)


if __name__ == "__main__":
    main()

"""How much faster a job that leaks grows under the probes: its memory by steps, with and without them.

    python bench/leaks.py [--rounds N]

Three jobs keep what they should not: the loss of each step with its graph, the outputs with theirs, the batches; a
fourth keeps nothing. Each runs alone, alone again as the control, and under `torchtriage run`, by turns. Printed is the
median over rounds of the bytes that a step adds to the process (its resident set between step 300 and the last), and
the ratio to the first.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from processes import NAME, ended

FIRST, LAST = 300, 1500  # steps between which the growth is taken: pools and caches are full by then
JOB = f"""
import gc, os, torch
torch.manual_seed(0)
layers = torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.Linear(256, 8)
model = torch.nn.Sequential(*layers)
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
batches = torch.utils.data.DataLoader(torch.randn(32 * {LAST}, 64), batch_size=32)
kept = []
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
for step, batch in enumerate(batches):
    if step == {FIRST}:
        before = resident()
    output = model(batch)
    loss = output.square().mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=RETAIN)
    optimizer.step()
    kept.append(KEPT)
with open(os.environ["GROWTH"], "w") as file:
    file.write(str((resident() - before) / ({LAST} - {FIRST})))
"""
KINDS = ("alone", "alone again", "watched")
LEAKS = {
    "nothing": ("False", "None"),
    "losses with their graphs": ("True", "loss"),
    "outputs with their graphs": ("True", "output"),
    "batches": ("False", "batch"),
}


def growth(script: str, folder: Path, *launcher: str) -> float:
    """Bytes that a step of SCRIPT adds, where LAUNCHER is what Python is told before its name."""
    (folder / NAME).write_text(script, encoding="utf-8")
    told = folder / "growth.txt"
    ended(("env", f"GROWTH={told}", sys.executable, *launcher, folder / NAME), folder)
    return float(told.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    for name, (retain, kept) in LEAKS.items():
        script = JOB.replace("RETAIN", retain).replace("KEPT", kept)
        rows = [by_turns(script, number) for number in range(rounds)]
        alone, *others = (statistics.median(row[kind] for row in rows) / 1024 for kind in KINDS)
        print(f"{name}: {alone:.1f} KiB a step")
        for kind, told in zip(KINDS[1:], others, strict=True):
            ratio = statistics.median(row[kind] / row["alone"] for row in rows)
            print(f"  {kind:<13} {told:8.1f} KiB  x {ratio:.3f}", flush=True)


def by_turns(script: str, number: int) -> dict[str, float]:
    """The growth in one run of each kind, in an order that changes with the NUMBER of the round."""
    told = {}
    for kind in KINDS[number % len(KINDS) :] + KINDS[: number % len(KINDS)]:
        with tempfile.TemporaryDirectory() as place:
            run = ("-m", "torchtriage", "run", "--out", str(Path(place) / "out"), "--", sys.executable)
            told[kind] = growth(script, Path(place), *run if kind == "watched" else ())
    return told


if __name__ == "__main__":
    main()

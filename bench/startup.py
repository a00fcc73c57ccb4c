"""What `torchtriage run` adds to the shortest job there is: a script that imports torch and takes one step.

    python bench/startup.py [--rounds N]

Prints the median over pairs of neighbouring runs, with and without, of the seconds that the job itself takes longer,
next to what importing torch costs it; what the command takes before the job starts, and after it has ended to judge
and to write the report. CPU seconds of the job's own process stand beside: other work of the machine is not in them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

JOB = """
from time import process_time, time
began, spent = time(), [process_time()]
import torch
imported = time()
spent.append(process_time())
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
model(torch.ones(2, 4)).sum().backward()
optimizer.step()
import json, os
with open(os.environ["TIMES"], "w") as file:
    json.dump({"began": began, "imported": imported, "stepped": time(), "cpu": [*spent, process_time()]}, file)
"""
TIMER = "import sys, time; a = time.time(); import subprocess; c = subprocess.run(sys.argv[1:]); print(a, time.time())"


def job(folder: Path, *launcher: str) -> dict[str, float]:
    """Seconds of each part of one run of the job, started by LAUNCHER or by Python itself."""
    script, times = folder / "job.py", folder / "times.json"
    script.write_text(JOB)
    words = [*launcher, sys.executable, str(script)]
    outer = {**os.environ, "TIMES": str(times), "XDG_CACHE_HOME": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", TIMER, *words], env=outer, capture_output=True, text=True, check=True, cwd=folder
    )
    started, ended = map(float, done.stdout.split())
    inside = json.loads(times.read_text())
    return {
        "before the job": inside["began"] - started,
        "import": inside["imported"] - inside["began"],
        "one step": inside["stepped"] - inside["imported"],
        "after the job": ended - inside["stepped"],
        "in all": ended - started,
        "CPU of torch": inside["cpu"][1] - inside["cpu"][0],
        "CPU of the job": inside["cpu"][2],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        launchers = [(sys.executable, "-m", "torchtriage", "run", "--out", str(folder / f"run{n}"), "--")
                     for n in range(rounds + 1)]  # fmt: skip
        job(folder), job(folder, *launchers.pop())  # compiles, and fills the caches
        pairs = [(job(folder), job(folder, *launcher)) for launcher in launchers]
    added = {name: statistics.median(run[name] - plain[name] for plain, run in pairs) for name in pairs[0][0]}
    torch, cpu = (statistics.median(plain[name] for plain, _ in pairs) for name in ("import", "CPU of torch"))
    print(f"importing torch: {torch:.2f} s, {cpu:.2f} s of CPU; {rounds} pairs, medians of the differences:")
    for name, seconds in added.items():
        print(f"  {name:<15} {seconds:+6.2f} s")
    until = sum(added[name] for name in ("before the job", "import", "one step"))
    print(f"  until the first step has ended {until:+.2f} s, {until / torch:.2f} of importing torch;")
    print("  judging and writing the report come after the job")


if __name__ == "__main__":
    main()

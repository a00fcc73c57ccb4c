"""What is left of an experiment that is killed: processes that go on, files outside of its own folder, and in it.

python bench/killed.py [--times N] [--recipe NAME …]: N experiments, each ended by SIGKILL at another moment of its
course, from its first line on. Prints what was left SECONDS later: none is the floor. The moments are drawn with a
fixed seed; what happens at them depends on the machine.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from unseen import wilson

SECONDS = 30.0  # until what is still there counts as left
COURSE = {"stability": 12.0, "speed": 40.0}  # seconds of an experiment, about, within which it is killed
TRAINING = """
import torch
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
while True:
    optimizer.zero_grad()
    model(torch.randn(16, 8)).square().mean().backward()
    optimizer.step()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20, help="of each recipe")
    parser.add_argument("--recipe", nargs="+", choices=sorted(COURSE), default=sorted(COURSE))
    given = parser.parse_args()
    draw = random.Random(0)  # noqa: S311 - moments, no secrets
    for recipe in given.recipe:
        without = [0, 0, 0]
        for number in range(given.times):
            moment = draw.uniform(0.0, COURSE[recipe])
            found = left(recipe, moment)
            without = [total + (not each) for total, each in zip(without, found, strict=True)]
            if any(found):
                print(f"{recipe} {number}, killed after {moment:.2f} s: {found}", flush=True)
        for title, total in zip(("process", "file of the user changed", "file in its folder"), without, strict=True):
            print(f"{recipe}: no {title} left: {wilson(total, given.times)}", flush=True)


def left(recipe: str, moment: float) -> tuple[list[str], list[str], list[str]]:
    """Processes, files beside the script, and files of mirrors that are there SECONDS after the kill at MOMENT."""
    with tempfile.TemporaryDirectory(prefix="killed-") as name:
        folder = Path(name)
        script = folder / "train.py"
        script.write_text(TRAINING)
        command = [sys.executable, "-m", "torchtriage", "experiment", "--recipe", recipe, "--steps", "16"]
        job = subprocess.Popen(
            [*command, "--out", "out", "--", sys.executable, "train.py"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(moment)
        os.kill(job.pid, signal.SIGKILL)
        job.wait()
        until = time.monotonic() + SECONDS
        while True:
            found = working_in(folder), beside(folder), [path.name for path in (folder / "out").glob("leg*")]
            if not any(found) or time.monotonic() > until:
                return found
            time.sleep(0.1)


def beside(folder: Path) -> list[str]:
    """What else than the script and the experiment's own folder lies in FOLDER, or another content of the script."""
    script = folder / "train.py"
    other = [path.name for path in folder.iterdir() if path.name not in ("train.py", "out")]
    return other + (["train.py"] if not script.exists() or script.read_text() != TRAINING else [])


def working_in(folder: Path) -> list[str]:
    """The processes whose working folder lies in FOLDER."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            place = str((entry / "cwd").readlink())
        except OSError:  # it has gone, or is another user's
            continue
        if place.startswith(str(folder)):
            found.append(f"{entry.name} in {place.removeprefix(str(folder))}")
    return found


if __name__ == "__main__":
    main()

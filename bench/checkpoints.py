"""What a save of TrainingState costs beside a bare write of the same bytes, and a verification beside torch.load.

    python bench/checkpoints.py [--megabytes N] [--folder FOLDER]
    python bench/checkpoints.py --fuzz N

A save: hashes, fsync of each file and folder, rename. The bare write: the same bytes from one buffer, and fsync. In
turns; what counts is the quickest of each, for all that others do to a disk only adds to it, and the median of the
ratios of each round stands beside it. Both reads find the file in the page cache: they compare work, not disks.
With --fuzz N the files of others are read instead: hostile ones, and N pickles with something broken in them
(bench/reading.py, which also measures what reading costs).
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torchtriage.toolkit import TrainingState
from torchtriage.toolkit.state.opening import Opened

ROUNDS, TENSORS = 11, 48
Pairs = list[tuple[float, float]]
SAVE, VERIFY = 1.10, 0.15
CHUNK = 64 << 20


def seconds(work: Callable[[], object]) -> float:
    os.sync()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def bare(path: Path, data: memoryview) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    place = 0
    while place < len(data):
        place += os.write(file, data[place : place + CHUNK])
    os.fsync(file)
    os.close(file)


def saves(folder: Path, model: Any) -> Pairs:
    """The seconds of each round's save and of its bare write; which of both goes first changes."""
    import torch

    data = memoryview(torch.cat([each.detach() for each in model.values()]).view(torch.uint8).numpy())
    state, spent = TrainingState(folder / "steps", model=model), []
    for number in range(ROUNDS):
        work = {"save": lambda: state.save(number), "bare": lambda: bare(folder / "raw", data)}  # noqa: B023
        order = ["save", "bare"] if number % 2 else ["bare", "save"]
        took = {name: seconds(work[name]) for name in order}
        spent.append((took["save"], took["bare"]))
        (folder / "raw").unlink()
        if number:
            shutil.rmtree(folder / f"steps/step-{number - 1:09d}")
    state.close()
    return spent


def verifications(folder: Path, model: Any) -> Pairs:
    """The seconds of each round's verification of a step, and of torch.load of the same weights."""
    import torch

    torch.save(model.state_dict(), folder / "weights.pt")
    step = folder / f"steps/step-{ROUNDS - 1:09d}"
    spent = []
    for _ in range(ROUNDS):
        loaded = seconds(lambda: torch.load(folder / "weights.pt", weights_only=True))
        spent.append((seconds(lambda: Opened(step).verify()), loaded))
    return spent


def main() -> int:
    import logging

    import torch

    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--folder", type=Path, help="on the disk that is measured; the system's folder for such files")
    parser.add_argument("--fuzz", type=int, default=0, metavar="N", help="read hostile files and N broken pickles")
    options = parser.parse_args()
    if options.fuzz:
        from reading import attacked

        return attacked(options.fuzz)
    each = options.megabytes * 1_000_000 // (4 * TENSORS)
    model = torch.nn.ParameterDict({f"w{n}": torch.nn.Parameter(torch.randn(each)) for n in range(TENSORS)})
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        found = {
            "a save, of a bare write and fsync": (saves(Path(folder), model), SAVE),
            "a verification, of torch.load": (verifications(Path(folder), model), VERIFY),
        }
    late = 0
    for name, (spent, goal) in found.items():
        ours, floor = (min(column) for column in zip(*spent, strict=True))
        median = statistics.median(own / other for own, other in spent)
        print(f"{name}: {ours / floor:.2f} (goal {goal:.2f}; {ours:.3f} s of {floor:.3f} s, median {median:.2f})")
        late += ours / floor > goal
    return int(late > 0)


if __name__ == "__main__":
    sys.exit(main())

"""How well a planted delay is read: one of two ranks pauses in every step, and its lateness is read from the record.

    python bench/delays.py [--rounds N]

The job measures by itself how long its pauses really took (a pause is never shorter than asked for, and on a busy
machine longer). Printed are the median pause; by how much its phase is read to be longer than on the other rank; and by
how much the rank is read to be late, which has in it that all runs more slowly after a pause, and what else the machine
did. The last line of each is the median error of the phase.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

READ = re.compile(r"rank 1 comes ([\d.]+) ms .* ([\d.]+) ms longer in other")
PAUSES = (0.010, 0.005, 0.020, 0.040)
SCRIPT = """
import statistics
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1)))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
draw = torch.Generator().manual_seed(dist.get_rank())
took = []
for _ in range(150):
    x = torch.randn(64, 64, generator=draw)
    if dist.get_rank() == 1:
        began = time.perf_counter()
        time.sleep(PAUSE)
        took.append(time.perf_counter() - began)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x[:, :1]).backward()
    optimizer.step()
if took:
    Path(TOLD).write_text(str(statistics.median(took)))
dist.destroy_process_group()
"""


def once(pause: float, folder: Path) -> tuple[float, float, float]:
    """Seconds that the pause took; by which the finding says that the rank is late, and is longer in the phase."""
    script, took = folder / "train.py", folder / "took"
    script.write_text(SCRIPT.replace("PAUSE", str(pause)).replace("TOLD", repr(str(took))))
    job = ["torchrun", "--standalone", "--nproc-per-node", "2", str(script)]
    watched = [sys.executable, "-m", "torchtriage", "run", "--json", "--out", str(folder / "run"), "--", *job]
    done = subprocess.run(watched, capture_output=True, text=True, check=True)
    found = [each for each in json.loads(done.stdout)["findings"] if each["fault"] == "straggler"]
    read = READ.search(found[0]["evidence"][0]["fact"]) if found else None
    late, longer = (float(each) / 1e3 for each in read.groups()) if read else (math.nan, math.nan)
    return float(took.read_text()), late, longer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for pause in PAUSES:
        errors = []
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory() as folder:
                took, late, longer = once(pause, Path(folder))
            errors.append((longer - took) / took)
            print(
                f"pause {took * 1e3:6.2f} ms  longer in its phase {longer * 1e3:6.2f} ms {errors[-1]:+6.1%}  "
                f"late {late * 1e3:6.2f} ms {(late - took) / took:+6.1%}",
                flush=True,
            )
        print(
            f"  median error of the phase, for a pause of {pause * 1e3:.0f} ms: {statistics.median(errors):+.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()

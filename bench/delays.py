"""How well a planted delay is read: one of two ranks pauses in every step, and its lateness is read from the record.

    python bench/delays.py [--rounds N]

The job measures by itself how long its pauses really took (a pause is never shorter than asked for, and on a busy
machine longer). Printed are the median pause, what is read, and the error as a share of the pause.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "made"))

from jobs import Server

from torchtriage import triage

PAUSES = (0.005, 0.010, 0.020, 0.040)
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


def once(server: Server, pause: float, folder: Path) -> tuple[float, float, bool]:
    """Seconds that the pause took, seconds that are read, and whether the straggler was called."""
    script, told = folder / "train.py", folder / "took"
    script.write_text(SCRIPT.replace("PAUSE", str(pause)).replace("TOLD", repr(str(told))))
    if server.run(script, folder / "run", ranks=2, limit=300):
        raise SystemExit((folder / "run" / "stderr1.txt").read_text())
    case = triage.judge(folder / "run")
    late = case.measurements["ranks"]["each"][1]["late"]
    return float(told.read_text()), float(late), "straggler" in case.shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    server = Server()
    for pause in PAUSES:
        errors = []
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory() as folder:
                took, late, called = once(server, pause, Path(folder))
            errors.append((late - took) / took)
            said = "called" if called else "not called"
            print(f"pause {took * 1e3:6.2f} ms  read {late * 1e3:6.2f} ms  {errors[-1]:+7.1%}  {said}", flush=True)
        print(f"  median error of a pause of {pause * 1e3:.0f} ms: {statistics.median(errors):+.1%}", flush=True)
    server.close()


if __name__ == "__main__":
    main()

"""One rank of a proof: prints what its body leaves in `result`, as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from torch import distributed

sys.path.insert(0, str(Path(__file__).parents[2] / "made"))

from devices import CudaDevice, Device, SimulatedDevice

from torchtriage.simulation import Costs, start


def main(given: dict, folder: Path) -> None:
    torch.set_num_threads(1)
    device: Device = CudaDevice() if given["device"] == "cuda" else SimulatedDevice(start(2, costs=Costs.free()))
    section, rank = given["section"], given["rank"]
    device.module.set_device(rank)
    store = distributed.FileStore(str(folder / f"{section}.store"), 2)
    distributed.init_process_group(device.backend, store=store, rank=rank, world_size=2)
    shown = device.shown(given["slug"], section, {int(before): after for before, after in given["sizes"].items()})
    names = {"device": device, "shown": shown, "rank": rank, "section": section}
    names |= {"distributed": distributed, "torch": torch}
    exec(compile(given["body"], "body", "exec"), names)
    sys.stdout.write(json.dumps(names["result"]) + "\n")
    sys.stdout.flush()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), Path(sys.argv[2]))

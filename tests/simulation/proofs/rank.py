"""One rank of a proof: prints what its body leaves in `result`, by section, as JSON."""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch import distributed

sys.path.insert(0, str(Path(__file__).parents[2] / "made"))

from devices import CudaDevice, Device, SimulatedDevice

from torchtriage.simulation import Costs, start

SECTIONS = ("Bad", "Good")


def main(given: dict[str, Any], folder: Path) -> None:
    torch.set_num_threads(1)
    device: Device = CudaDevice() if given["device"] == "cuda" else SimulatedDevice(start(2, costs=Costs.free()))
    device.module.set_device(given["rank"])
    store = distributed.FileStore(str(folder / "store"), 2)
    distributed.init_process_group(device.backend, store=store, rank=given["rank"], world_size=2)
    results = {section: result(device, section, given) for section in SECTIONS}
    sys.stdout.write(json.dumps(results) + "\n")
    distributed.destroy_process_group()


def result(device: Device, section: str, given: dict[str, Any]) -> object:
    gc.collect()  # what the other section has left on the device
    shown = device.shown(given["slug"], section)
    names = {"device": device, "shown": shown, "rank": given["rank"], "section": section, "torch": torch}
    exec(compile(given["body"], "body", "exec"), names)
    return names["result"]


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), Path(sys.argv[2]))

"""The program of a rank that leaves its Flight Recorder dumps: python recorded.py MODE RANK FOLDER, gloo, two ranks."""

import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

SECONDS = 60


def train(mode, rank):
    values = torch.ones(8)
    for _ in range(3):
        dist.all_reduce(values)
    if mode == "missing" and rank == 0:
        return dist.all_reduce(values, async_op=True)
    if mode == "operation":
        other = [torch.ones(8), torch.ones(8)]
        return dist.all_reduce(values, async_op=True) if rank else dist.all_gather(other, values, async_op=True)
    return None


def meet(folder, rank, name):
    """Both ranks have come this far: no collective of theirs is told by it."""
    (folder / f"{name}{rank}.here").touch()
    ends = time.monotonic() + SECONDS
    while not (folder / f"{name}{1 - rank}.here").exists() and time.monotonic() < ends:
        time.sleep(0.01)


def settle():
    """The first three are over: the recorder notes it on another thread, on a busy machine a moment later."""
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        entries = json.loads(c10d._dump_fr_trace_json())["entries"]
        if all(each["retired"] for each in entries if each["collective_seq_id"] <= 3):
            return
        time.sleep(0.01)


def main():
    mode, rank, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    work = train(mode, rank)  # kept: a handle that is dropped lets go of its collective
    settle()
    meet(folder, rank, "trained")
    (folder / f"json{rank}").write_bytes(c10d._dump_fr_trace_json())
    (folder / f"dump{rank}").write_bytes(c10d._dump_fr_trace())
    meet(folder, rank, "dumped")
    del work
    os._exit(0)  # without waiting for what never comes


main()

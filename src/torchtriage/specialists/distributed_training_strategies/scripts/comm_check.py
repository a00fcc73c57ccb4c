"""Whether the processes of a launch find each other, and whether the collectives give the right numbers.

Run it exactly as the job is launched, before the job:

    torchrun --nproc-per-node 2 comm_check.py            several processes, env:// from torchrun
    python comm_check.py                                 alone, world size 1
    python comm_check.py --init file:///shared/new --rank 0 --world-size 2
    python comm_check.py --init tcp://10.0.0.1:29500 --rank 0 --world-size 2

Every rank prints what it read from the environment and where it runs; rank 0 then prints one line for each check (ok or
WRONG) and how long an all-reduce takes. Ends with 0 when everything is right, else with 1 and the cause.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
HINTS = {
    "env://": "start it with torchrun, or export RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT",
    "file://": "is the file new, and on a file system that all hosts share?",
    "tcp://": "is the port open from every host to rank 0, and free there?",
}


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--init", help="env://, file:///PATH or tcp://HOST:PORT; default: env:// under a launcher")
    parser.add_argument("--rank", type=int, default=0, help="for file:// and tcp://")
    parser.add_argument("--world-size", type=int, default=1, help="for file:// and tcp://")
    parser.add_argument("--backend", choices=("auto", "gloo", "nccl"), default="auto", help="auto: nccl with CUDA")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds to wait for other ranks")
    parser.add_argument("--mib", type=float, default=4.0, help="size of the timed all-reduce")
    return parser.parse_args()


def launched(given: argparse.Namespace, folder: str) -> str:
    """The init method: the one asked for, the launcher's, or a file of our own for a process alone."""
    if given.init:
        return str(given.init)
    return "env://" if "RANK" in os.environ else Path(folder, "store").as_uri()


def join(given: argparse.Namespace, method: str, backend: str) -> None:
    """Enters the process group."""
    own = {} if method == "env://" else {"rank": given.rank, "world_size": given.world_size}
    dist.init_process_group(backend, init_method=method, timeout=timedelta(seconds=given.timeout), **own)


def device_of(backend: str) -> Any:
    """This process's own device: by its rank on this host, never by its rank in the job."""
    if backend != "nccl":
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    return device


def checks(device: Any) -> Iterator[tuple[str, Callable[[], bool]]]:
    """Each collective, with what tells whether its result is right; all ranks go through all of them."""
    rank, size = dist.get_rank(), dist.get_world_size()
    own = torch.full((3,), float(rank), device=device)
    total = size * (size - 1) / 2

    def reduced() -> bool:
        tensor = own.clone()
        dist.all_reduce(tensor)
        return bool((tensor == total).all())

    def sent() -> bool:
        tensor = own.clone() + 7
        dist.broadcast(tensor, src=0)
        return bool((tensor == 7).all())

    def gathered() -> bool:
        tensors = [torch.empty_like(own) for _ in range(size)]
        dist.all_gather(tensors, own)
        return bool([int(each[0]) for each in tensors] == list(range(size)))

    def placed() -> bool:
        places: list[Any] = [None] * size
        dist.all_gather_object(places, (socket.gethostname(), str(device), rank if device.type == "cpu" else 0))
        return bool(len(set(places)) == size)

    yield "all_reduce sums over all ranks", reduced
    yield "broadcast reaches all ranks", sent
    yield "all_gather keeps the order of ranks", gathered
    yield "every rank has a device of its own", placed


def on_all(device: Any, right: bool) -> bool:
    """Whether it is right on every rank."""
    flag = torch.tensor([float(right)], device=device)
    dist.all_reduce(flag, op=dist.ReduceOp.MIN)
    return bool(flag.item())


def milliseconds(device: Any, mib: float) -> float:
    """The time of one all-reduce of MIB after warm-up, the slowest rank waited for."""
    tensor = torch.ones(int(mib * 2**18), device=device)
    begin = time.perf_counter()
    for turn in range(7):
        if turn == 2:
            begin = time.perf_counter()
        dist.all_reduce(tensor)
        tensor.fill_(1.0)
        if device.type == "cuda":
            torch.cuda.synchronize()
    return (time.perf_counter() - begin) / 5 * 1e3


def checked(given: argparse.Namespace, device: Any) -> int:
    """1 when a collective gives a wrong result, else 0; rank 0 tells."""
    wrong = 0
    for name, check in checks(device):
        right = on_all(device, check())
        wrong += not right
        if dist.get_rank() == 0:
            print(f"{'ok   ' if right else 'WRONG'} {name}")
    took = milliseconds(device, given.mib)
    if dist.get_rank() == 0:
        print(f"all_reduce of {given.mib:g} MiB: {took:.2f} ms over {dist.get_world_size()} ranks")
    return int(wrong > 0)


def main() -> int:
    given = parsed()
    cuda = torch.cuda.is_available() and dist.is_nccl_available()
    backend = given.backend if given.backend != "auto" else "nccl" if cuda else "gloo"
    said = " ".join(f"{name}={os.environ[name]}" for name in VARIABLES if name in os.environ)
    with tempfile.TemporaryDirectory() as folder:
        method = launched(given, folder)
        try:
            device = device_of(backend)
            join(given, method, backend)
        except (RuntimeError, ValueError) as error:
            hint = HINTS.get(method.partition("://")[0] + "://", "")
            print(f"{socket.gethostname()}: no group by {method}: {error}\n{hint}", file=sys.stderr)
            return 1
        print(f"rank {dist.get_rank()} of {dist.get_world_size()}: {socket.gethostname()} {device} {backend} {said}")
        try:
            return checked(given, device)
        finally:
            dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())

"""Whether the processes of a launch find each other, and whether the collectives give the right numbers.

Run it exactly as the job is launched, before the job:

    torchrun --nproc-per-node 2 comm_check.py            several processes, env:// from torchrun
    python comm_check.py                                 alone, world size 1
    python comm_check.py --init file:///shared/new --rank 0 --world-size 2
    python comm_check.py --init tcp://10.0.0.1:29500 --rank 0 --world-size 2

Every rank prints what it read from the environment, where it runs and by which interface the others reach it; rank 0
then prints one line for each check (ok or WRONG) and a table of all-reduces from 1 KiB to 64 MiB: whether the sums are
right, the median time of one (of 1 KiB: the latency), and the bandwidth: of the tensor, and of the links (of which each
carries 2 (N - 1) / N times as much in a ring of N). Ends with 0 when everything is right, else with 1 and the cause.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch
import torch.distributed as dist

VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
INTERFACES = {"gloo": "GLOO_SOCKET_IFNAME", "nccl": "NCCL_SOCKET_IFNAME"}
SIZES = tuple(1024 * 4**power for power in range(9))  # bytes: 1 KiB to 64 MiB
WARM = 2  # all-reduces of each size that are not counted
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
    parser.add_argument("--mib", type=float, default=64.0, help="size of the largest all-reduce")
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


def address_of(interface: str) -> str | None:
    """The IPv4 address of a network interface; None where it has none, or the system does not tell."""
    try:
        import fcntl

        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            told = fcntl.ioctl(probe.fileno(), 0x8915, struct.pack("256s", interface[:15].encode()))  # SIOCGIFADDR
        return socket.inet_ntoa(told[20:24])
    except (ImportError, OSError):
        return None


def interface(backend: str) -> tuple[str, str, str]:
    """Name and address of the interface by which other ranks reach this process, and what decides that.

    Gloo listens at the address that the host's own name resolves to, unless a variable names the interface; NCCL looks
    for one by itself, and tells it with NCCL_DEBUG=INFO.
    """
    variable = INTERFACES[backend]
    if os.environ.get(variable):
        name = os.environ[variable].split(",")[0].lstrip("=^")
        return name, address_of(name) or "no address", variable
    if backend == "nccl":
        return "chosen by NCCL", "", f"{variable} is not set"
    try:
        address = socket.gethostbyname(socket.gethostname())
    except OSError:
        return "unknown", "", "the host's name does not resolve"
    known = {address_of(each): each for _, each in socket.if_nameindex()}
    return known.get(address, "lo" if address.startswith("127.") else "unknown"), address, "the host's name"


def store(method: str) -> str:
    """Where this process looks for the rendezvous, and the address behind the name."""
    found = urlsplit(method).hostname if method.startswith("tcp://") else os.environ.get("MASTER_ADDR")
    if found is None or method.startswith("file://"):
        return method
    try:
        return f"{found} is {socket.gethostbyname(found)}"
    except OSError:
        return f"{found} does not resolve"


def reachable(address: str) -> bool:
    """Whether ranks on other hosts, if there are any, can reach this ADDRESS; told the same on all ranks."""
    places: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(places, (socket.gethostname(), address))
    return len({host for host, _ in places}) == 1 or not any(each.startswith("127.") for _, each in places)


def milliseconds(device: Any, size: int) -> tuple[float, bool]:
    """The median time of an all-reduce of SIZE bytes on this rank after warm-up, and whether its sums were right."""
    rank, ranks, times, right = dist.get_rank(), dist.get_world_size(), [], True
    for turn in range(WARM + (40 if size <= 2**16 else 10 if size <= 2**22 else 5)):
        tensor = torch.full((max(size // 4, 1),), float(rank + 1 + turn % 3), device=device)
        if device.type == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        dist.all_reduce(tensor)
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
        right = right and bool((tensor == ranks * (ranks + 1) / 2 + ranks * (turn % 3)).all())
    return statistics.median(times[WARM:]) * 1e3, right


def measured(device: Any, mib: float) -> bool:
    """The table, which rank 0 prints; whether all sums were right on all ranks."""
    ranks, wrong = dist.get_world_size(), 0
    sizes = [size for size in SIZES if size <= mib * 2**20] or [int(mib * 2**20)]
    if dist.get_rank() == 0:
        print(f"all_reduce over {ranks} ranks\n{'size':>10} {'median':>12} {'bandwidth':>12} {'of links':>12}  sums")
    for size in sizes:
        took, correct = milliseconds(device, size)
        right = on_all(device, correct)
        wrong += not right
        if dist.get_rank() == 0:
            name = f"{size / 2**20:g} MiB" if size >= 2**20 else f"{size / 2**10:g} KiB"
            speed = size / took / 1e6  # GB a second
            links = speed * 2 * (ranks - 1) / ranks
            print(f"{name:>10} {took:>9.3f} ms {speed:>7.3f} GB/s {links:>7.3f} GB/s  {'ok' if right else 'WRONG'}")
    return not wrong


def checked(given: argparse.Namespace, device: Any, address: str) -> int:
    """1 when a collective gives a wrong result, else 0; rank 0 tells."""
    wrong = 0
    for name, check in (*checks(device), ("other hosts reach the address of each rank", lambda: reachable(address))):
        right = on_all(device, check())
        wrong += not right
        if dist.get_rank() == 0:
            print(f"{'ok   ' if right else 'WRONG'} {name}")
    return int(not measured(device, given.mib) or wrong > 0)


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
        name, address, why = interface(backend)
        where = f"{socket.gethostname()} {device} {backend} {said}"
        print(
            f"rank {dist.get_rank()} of {dist.get_world_size()}: {where} interface {name} {address} ({why})"
            f" rendezvous {store(method)}"
        )
        try:
            return checked(given, device, address)
        finally:
            dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())

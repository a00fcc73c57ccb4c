"""A host that queues work on a device, moment by moment: what a profiler would have written, and what is true of it."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

US, MS = 1_000, 1_000_000
"""Nanoseconds."""
Event: TypeAlias = dict[str, Any]
Meeting: TypeAlias = Generator[tuple[int, int], int, None]
"""What a rank does: it yields when it comes to a collective and what that takes, and is told when it ends."""
LATENCY = 5 * US
CALL = 4 * US
MAIN, BACKWARD = 100, 200
COMPUTE, NETWORK = 7, 20
AROUND = ("autograd::engine::evaluate_function: MmBackward0", "MmBackward0", "aten::matmul", "aten::t")


@dataclass(frozen=True)
class Group:
    """A process group. shown: as a profiler writes its ranks, of which it names thirty."""

    name: str
    ranks: tuple[int, ...]

    @property
    def shown(self) -> str:
        named = ", ".join(map(str, self.ranks[:30]))
        return f"[{named}, ...]" if len(self.ranks) > 30 else f"[{named}]"


@dataclass
class Rank:
    """One process and its device. now: on the host; ends: of work queued, by stream; busy: all of it, as intervals."""

    number: int
    world: int
    chance: Random
    now: int
    events: list[Event] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=lambda: {COMPUTE: 0, NETWORK: 0})
    busy: list[tuple[int, int, str]] = field(default_factory=list)
    windows: list[tuple[int, int, int]] = field(default_factory=list)
    reached: int = 0
    shapes: bool = False
    _calls: int = 0
    _sequence: int = 0

    def event(self, cat: str, name: str, start: int, length: int, tid: int = MAIN, **args: Any) -> None:
        self.events.append({"cat": cat, "name": name, "tid": tid, "start": start, "length": length, "args": args})

    def work(self, nanoseconds: int) -> None:
        """Python that calls no operator."""
        self.now += nanoseconds

    def data(self, nanoseconds: int) -> None:
        """A batch."""
        self.event(
            "user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", self.now, nanoseconds
        )
        self.now += nanoseconds

    def wrapped(self, cost: int) -> None:
        """What stands around an operator that launches, and calls beside the launch: most events of a trace."""
        for depth, name in enumerate(AROUND):
            number = self._calls * 10 + depth + 10**7
            told = {"External id": number, "Record function id": 0, "Sequence number": number, "Ev Idx": number}
            self.event("cpu_op", name, self.now + depth * 100, cost - depth * 200, **told)
        for place, name in enumerate(("cudaStreamIsCapturing", "cudaEventRecord")):
            number = 10**8 + self._calls * 2 + place
            self.event("cuda_runtime", name, self.now + 500 + place * US, 300, cbid=317, correlation=number)

    def operator(
        self, name: str, kernel: str, kernel_time: int, cost: int = 20 * US, tid: int = MAIN, **args: Any
    ) -> None:
        """An operator that launches one kernel; it takes COST of the host's time."""
        cost = self.jittered(cost)
        self._calls += 1
        number = self._calls
        told = {"External id": number, "Record function id": 0, "Ev Idx": number}
        if self.shapes and "dims" in args:
            told |= {"Input Dims": args["dims"], "Input type": args.get("types", ["float"] * len(args["dims"]))}
        self.event("cpu_op", name, self.now, cost, tid, **told)
        launch = self.now + max(cost - CALL - US, 0)
        self.event(
            "cuda_runtime", "cudaLaunchKernel", launch, CALL, tid, **{"External id": number, "correlation": number}
        )
        self.queued("kernel", kernel, launch, self.jittered(kernel_time), COMPUTE, number)
        self.now += cost

    def queued(self, cat: str, name: str, launch: int, length: int, stream: int, number: int, **args: Any) -> int:
        """Work that begins when the device gets to it; when it ends."""
        start = max(launch + LATENCY, self.ends[stream] + US)
        self.done(cat, name, start, start + length, stream, number, **args)
        return start + length

    def done(self, cat: str, name: str, start: int, end: int, stream: int, number: int, **args: Any) -> None:
        self.ends[stream] = end
        kind = "communication" if name.startswith("nccl") else "memcpy" if cat == "gpu_memcpy" else "compute"
        self.busy.append((start, end, kind))
        told = {"External id": number, "device": self.number, "context": 1, "stream": stream, "correlation": number}
        self.event(cat, name, start, end - start, stream, **told, **args)

    def copy(self, nbytes: int, length: int, pinned: bool) -> None:
        """A batch to the device; from pageable memory the host waits for it."""
        self._calls += 1
        self.event("cuda_runtime", "cudaMemcpyAsync", self.now, CALL, correlation=self._calls)
        name = f"Memcpy HtoD ({'Pinned' if pinned else 'Pageable'} -> Device)"
        end = self.queued("gpu_memcpy", name, self.now, length, COMPUTE, self._calls, bytes=nbytes)
        self.now = self.now + CALL + US if pinned else end

    def item(self) -> None:
        """A number read on the host."""
        self._calls += 1
        begun, number = self.now, self._calls
        end = self.queued(
            "gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", begun + 4 * US, US, COMPUTE, number, bytes=4
        )
        self.event("cuda_runtime", "cudaMemcpyAsync", begun + 4 * US, CALL, correlation=number)
        released = max(end, begun + 10 * US) + 2 * US
        self.event(
            "cuda_runtime",
            "cudaStreamSynchronize",
            begun + 9 * US,
            released - begun - 9 * US,
            correlation=number + 10**6,
        )
        self.event("cpu_op", "aten::item", begun, released + US - begun, **{"External id": 10**6 + number})
        self.now = released + US

    def all_reduce(self, nbytes: int, transfer: int, tid: int = BACKWARD) -> Meeting:
        """Among all ranks."""
        everyone = Group("0", tuple(range(self.world)))
        return self.collective("AllReduce", nbytes, transfer, everyone, tid)

    def collective(self, what: str, nbytes: int, transfer: int, group: Group, tid: int = BACKWARD) -> Meeting:
        """Queued behind what was computed so far; ends for all ranks of the group once the last has come."""
        self._calls += 1
        self._sequence += 1
        number, launch = self._calls, self.now
        self.event("cpu_op", f"c10d::{what.lower()}_", launch, 20 * US, tid, **{"External id": number})
        self.event("cuda_runtime", "cudaLaunchKernelExC", launch + 8 * US, CALL, tid, correlation=number)
        start = max(launch + 8 * US + LATENCY, self.ends[NETWORK] + US, self.ends[COMPUTE] + US)
        end = yield start, transfer
        told = {
            "Collective name": what.lower(), "In msg nelems": nbytes // 4, "Out msg nelems": nbytes // 4,
            "Group size": len(group.ranks), "dtype": "Float", "Process Group Name": group.name,
            "Process Group Ranks": group.shown, "Seq": self._sequence,
        }  # fmt: skip
        self.done(
            "kernel",
            f"ncclDevKernel_{what}_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            start,
            end,
            NETWORK,
            number,
            **told,
        )
        self.now += 20 * US

    def join(self) -> None:
        """What is computed next waits for the network."""
        self.ends[COMPUTE] = max(self.ends[COMPUTE], self.ends[NETWORK])

    def step(self, number: int, begin: int) -> None:
        """Marks a step that began at BEGIN and ends now."""
        self.event("user_annotation", f"ProfilerStep#{number}", begin, self.now - begin)
        self.windows.append((number, max(begin, self.reached), self.now))
        self.reached = max(self.ends.values())
        self.now += US

    def jittered(self, nanoseconds: int) -> int:
        return int(nanoseconds * (0.95 + 0.1 * self.chance.random()))


def performed(meetings: list[Meeting]) -> None:
    """Runs all ranks to their ends, one collective after the other."""
    arrived = [next(each, None) for each in meetings]
    while any(come is not None for come in arrived):
        starts = [come for come in arrived if come is not None]
        end = max(start for start, _ in starts) + max(transfer for _, transfer in starts)
        arrived = [_sent(each, end) for each in meetings]


def _sent(meeting: Meeting, end: int) -> tuple[int, int] | None:
    try:
        return meeting.send(end)
    except StopIteration:
        return None


def truth(rank: Rank) -> list[dict[str, int]]:
    """For each step nanoseconds of computing, exposed communication, exposed copies and idling, by one sweep."""
    found = []
    for index, (_, begin, end) in enumerate(rank.windows):
        last = index + 1 == len(rank.windows)
        until = max(end, *(stop for _, stop, _ in rank.busy)) if last else rank.windows[index + 1][1]
        found.append(_swept(rank, begin, until))
    return found


def _swept(rank: Rank, begin: int, end: int) -> dict[str, int]:
    edges = []
    for start, stop, kind in rank.busy:
        low, high = max(start, begin), min(stop, end)
        if low < high:
            edges += [(low, 1, kind), (high, -1, kind)]
    spent = {"compute": 0, "communication": 0, "memcpy": 0, "idle": 0}
    running = {"compute": 0, "communication": 0, "memcpy": 0}
    at = begin
    for time, change, kind in sorted(edges):
        spent[next((each for each, count in running.items() if count), "idle")] += time - at
        running[kind] += change
        at = time
    spent["idle"] += end - at
    return spent

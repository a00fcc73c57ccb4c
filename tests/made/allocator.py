"""Memory snapshots of jobs whose truth is known: an allocator like torch's own, as far as its snapshots show it.

The schema is that of torch.cuda.memory._snapshot in torch 2.13. States of a block: active_allocated, a tensor has it;
active_awaiting_free, a stream has not ended with it; inactive, free for reuse.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

MIB, GIB = 2**20, 2**30
TORCH = "/env/lib/python3.11/site-packages/torch"
Frames = list[dict[str, Any]]


class OutOfMemoryError(Exception):
    pass


@dataclass(eq=False)
class Block:
    addr: int
    size: int
    segment: Segment
    asked: int = 0
    state: str = "inactive"
    frames: Frames = field(default_factory=list)
    purpose: str = ""
    before: Block | None = None
    after: Block | None = None


@dataclass(eq=False)
class Segment:
    addr: int
    size: int
    frames: Frames
    small: bool
    first: Block | None = None


class Allocator:
    """A device of CAPACITY bytes. alive: truth, bytes by purpose."""

    def __init__(self, capacity: int = 8 * GIB, device: int = 0, recorded: bool = True) -> None:
        self.capacity, self.device, self.recorded = capacity, device, recorded
        self.entries: list[dict[str, Any]] = []
        self.segments: dict[int, Segment] = {}
        self.alive: Counter[str] = Counter()
        self._free: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
        self._by_addr: dict[int, Block] = {}
        self._next, self._time = 0x7F0000000000 + (device << 40), 1_700_000_000_000_000

    @property
    def reserved(self) -> int:
        return sum(each.size for each in self.segments.values())

    def malloc(self, size: int, frames: Frames, purpose: str = "") -> int:
        rounded, small = -(-size // 512) * 512, size <= MIB
        at = bisect_left(self._free[small], (rounded, 0))
        if at == len(self._free[small]):
            self._reserve(rounded, small, frames, size)
            at = bisect_left(self._free[small], (rounded, 0))
        block = self._by_addr[self._free[small].pop(at)[1]]
        self._split(block, rounded, small)
        block.state, block.asked, block.purpose = "active_allocated", size, purpose
        block.frames = list(frames)
        self.alive[purpose] += size
        self._note("alloc", block.addr, size, block.frames)
        return block.addr

    def free(self, addr: int, frames: Frames | None = None, waits: bool = False) -> None:
        """WAITS: for a stream that still uses the block."""
        block = self._by_addr[addr]
        told = list(frames) if frames is not None else block.frames
        self._note("free_requested", addr, block.asked, told)
        self.alive[block.purpose] -= block.asked
        block.state = "active_awaiting_free"
        if not waits:
            self.complete(addr, told)

    def complete(self, addr: int, frames: Frames | None = None) -> None:
        block = self._by_addr[addr]
        self._note("free_completed", addr, block.asked, frames or [])
        block.state, block.asked, block.frames, block.purpose = "inactive", 0, [], ""
        small = block.segment.small
        for other in (block.before, block.after):
            if other is not None and other.state == "inactive":
                self._free[small].remove((other.size, other.addr))
                first, second = sorted((block, other), key=lambda each: each.addr)
                first.size, first.after = first.size + second.size, second.after
                if second.after is not None:
                    second.after.before = first
                del self._by_addr[second.addr]
                block = first
        insort(self._free[small], (block.size, block.addr))

    def _split(self, block: Block, size: int, small: bool) -> None:
        left = block.size - size
        if left >= 512 if small else left > MIB:
            rest = Block(block.addr + size, left, block.segment, before=block, after=block.after)
            if block.after is not None:
                block.after.before = rest
            block.size, block.after = size, rest
            self._by_addr[rest.addr] = rest
            insort(self._free[small], (rest.size, rest.addr))

    def _reserve(self, size: int, small: bool, frames: Frames, asked: int) -> None:
        wanted = 2 * MIB if small else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        if self.reserved + wanted > self.capacity:
            self.empty_cache(frames)
        if self.reserved + wanted > self.capacity:
            oom = self._note("oom", None, asked, list(frames))
            oom["device_free"] = self.capacity - self.reserved
            raise OutOfMemoryError
        segment = Segment(self._next, wanted, list(frames), small)
        segment.first = Block(segment.addr, wanted, segment)
        self._next += wanted + 2 * MIB
        self.segments[segment.addr] = segment
        self._by_addr[segment.addr] = segment.first
        insort(self._free[small], (wanted, segment.addr))
        self._note("segment_alloc", segment.addr, wanted, segment.frames)

    def empty_cache(self, frames: Frames) -> None:
        for segment in [*self.segments.values()]:
            block = segment.first
            if block is not None and block.state == "inactive" and block.size == segment.size:
                self._free[segment.small].remove((block.size, block.addr))
                del self._by_addr[block.addr], self.segments[segment.addr]
                self._note("segment_free", segment.addr, segment.size, list(frames))

    def _note(self, action: str, addr: int | None, size: int, frames: Frames) -> dict[str, Any]:
        self._time += 5
        entry = {
            "action": action, "addr": addr, "size": size, "stream": 0, "time_us": self._time, "compile_context": "N/A",
            "user_metadata": "", "pool_id": (0, 0), "frames": frames,
        }  # fmt: skip
        if addr is None:
            del entry["addr"]
        if self.recorded:
            self.entries.append(entry)
        return entry

    def snapshot(self, most: int | None = None, marks: int = 0) -> dict[str, Any]:
        """MOST: entries of the history, as max_entries has it. MARKS: steps that a profiler has marked."""
        return {
            "segments": [self._segment(each) for _, each in sorted(self.segments.items())],
            "device_traces": [*([[]] * self.device), self.entries[-most:] if most else self.entries],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "expandable_segments": False},
            "external_annotations": [
                {"stage": stage, "name": f"ProfilerStep#{n}", "device": 0, "time_us": n}
                for n in range(marks)
                for stage in ("START", "END")
            ],
        }

    def _segment(self, segment: Segment) -> dict[str, Any]:
        blocks, block = [], segment.first
        while block is not None:
            blocks.append(block)
            block = block.after
        active = [each for each in blocks if each.state != "inactive"]
        return {
            "device": self.device, "address": segment.addr, "total_size": segment.size, "stream": 0,
            "allocated_size": sum(each.size for each in active if each.state == "active_allocated"),
            "active_size": sum(each.size for each in active), "requested_size": sum(each.asked for each in active),
            "segment_type": "small" if segment.small else "large", "segment_pool_id": (0, 0), "is_expandable": False,
            "frames": segment.frames,
            "blocks": [
                {"address": each.addr, "size": each.size, "requested_size": each.asked, "state": each.state,
                 "frames": each.frames}
                for each in blocks
            ],
        }  # fmt: skip


def stack(*lines: str) -> Frames:
    """Frames from "path:line:function", the innermost first."""
    return [
        {"filename": path, "line": int(line), "name": name}
        for path, line, name in (each.split(":", 2) for each in lines)
    ]


LOOP = ("/job/train.py:40:step", "/job/train.py:90:main", "/job/train.py:95:<module>")
BUILD = stack(
    f"{TORCH}/nn/modules/module.py:1300:convert", f"{TORCH}/nn/modules/module.py:900:_apply", "/job/train.py:20:build"
)
BATCH = stack("/job/train.py:35:step", *LOOP[1:])
STATE = stack(
    f"{TORCH}/optim/adam.py:180:_init_group", f"{TORCH}/optim/adam.py:230:step", "/job/train.py:44:step", *LOOP[1:]
)
SCRATCH = stack(
    f"{TORCH}/optim/adam.py:450:_multi_tensor_adam",
    f"{TORCH}/optim/adam.py:240:step",
    "/job/train.py:44:step",
    *LOOP[1:],
)
ZERO = stack(f"{TORCH}/optim/optimizer.py:990:zero_grad", "/job/train.py:38:step", *LOOP[1:])
LOSS = stack(f"{TORCH}/nn/functional.py:3500:cross_entropy", "/job/train.py:42:step", *LOOP[1:])
KEPT = stack("/job/train.py:46:step", *LOOP[1:])
ENGINE = stack(
    "??:0:at::native::mm",
    "??:0:torch::autograd::generated::AddmmBackward0::apply",
    "??:0:torch::autograd::Engine::evaluate_function",
)


def layer(number: int, line: int = 31) -> Frames:
    """The stack of what layer NUMBER of a model computes in forward."""
    called = [f"{TORCH}/nn/modules/linear.py:134:forward", f"{TORCH}/nn/modules/module.py:1780:_call_impl"]
    return stack(
        *called, f"/job/model.py:{line + number}:forward", f"{TORCH}/nn/modules/module.py:1780:_call_impl", *LOOP
    )


@dataclass
class Job:
    """A training with Adam: LAYERS parameters of PARAMETER bytes, and two activations of ACTIVATION bytes for each."""

    device: Allocator
    layers: int = 8
    parameter: int = 4 * MIB
    activation: int = 8 * MIB
    native: bool = True  # stacks="all": those of C++ too; a backward pass has no others
    parameters: list[int] = field(default_factory=list)
    gradients: list[int] = field(default_factory=list)
    states: list[int] = field(default_factory=list)

    def build(self) -> Job:
        self.parameters = [self.device.malloc(self.parameter, BUILD, "parameters") for _ in range(self.layers)]
        return self

    def step(self, keeps: bool = False, scale: float = 1.0) -> None:
        """KEEPS: the loss with its graph, whose activations stay. SCALE: of the activations of this step."""
        device, engine, size = self.device, ENGINE if self.native else [], int(self.activation * scale)
        for addr in self.gradients:
            device.free(addr, ZERO)
        self.gradients = []
        batch = device.malloc(MIB, BATCH, "batch")
        saved = [device.malloc(size, layer(n), "activations") for n in range(self.layers) for _ in range(2)]
        loss = device.malloc(4, LOSS, "activations")
        for n in range(self.layers):
            passing = device.malloc(size, engine, "passing")
            self.gradients.append(device.malloc(self.parameter, engine, "gradients"))
            device.free(passing, engine)
            for addr in saved[2 * n : 2 * n + 2] if not keeps else ():
                device.free(addr, engine)
        self._optimize()
        device.free(batch, KEPT)
        if not keeps:
            device.free(loss, KEPT)

    def _optimize(self) -> None:
        if not self.states:
            self.states = [self.device.malloc(self.parameter, STATE, "states") for _ in range(2 * self.layers)]
        self.device.free(self.device.malloc(self.parameter, SCRATCH, "workspace"), SCRATCH)

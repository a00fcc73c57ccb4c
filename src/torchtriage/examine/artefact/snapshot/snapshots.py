"""Snapshots read: one Memory for each device that was in use. Sizes in bytes, rows by the entries of a history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import add
from pathlib import PurePath
from typing import Any

import msgspec
from msgspec import Struct

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.artefact.frames import Frame, said
from torchtriage.examine.artefact.pickle.apart import answers
from torchtriage.examine.detector import CannotSee, view

_WORK = "torchtriage.examine.artefact.snapshot.summary:summarise"
_RECORD = "Call torch.cuda.memory._record_memory_history(max_entries=…) before the model is built."
_LARGEST = 20
_LINES = 7
OTHERS = 1  # the number of all stacks beyond those that are told


class Group(Struct, frozen=True):
    """What one stack allocated and is alive at the looked-at row, of which one stack frees it.

    stack, freed: numbers of stacks; freed is -1 for what is never freed. kept: bytes that are alive at the end too;
    old: bytes that have been alive for more than 200 entries.
    """

    stack: int
    freed: int
    bytes: int
    blocks: int
    kept: int
    old: int


class At(Struct, frozen=True):
    """One row. unrecorded: bytes that were allocated before the history begins, and freed within it."""

    used: int
    reserved: int
    unrecorded: int
    groups: tuple[Group, ...]


class Failure(Struct, frozen=True):
    """An allocation of SIZE bytes that failed. device_free: what CUDA had left. blocks, largest: the free pieces in
    what is reserved, and the largest of them; -1 where that cannot be told. after: allocations that followed.
    """

    row: int
    size: int
    device_free: int
    stack: int
    used: int
    reserved: int
    blocks: int
    largest: int
    after: int


class Kept(Struct, frozen=True):
    """What one stack allocated within the history and is alive at its end. parts: blocks, part_bytes: bytes, by eighths
    of the history in which they were allocated.
    """

    stack: int
    bytes: int
    blocks: int
    first: int
    last: int
    parts: tuple[int, ...]
    part_bytes: tuple[int, ...]


class Free(Struct, frozen=True):
    """What lies free in the segments at the end: in all, in how many pieces, the largest."""

    bytes: int
    blocks: int
    largest: int


class Layer(Struct, frozen=True):
    """What one stack holds, in bytes, at each point of the timeline."""

    stack: int
    bytes: tuple[int, ...]


class Device(Struct, frozen=True):
    """A device. used, reserved, free: at the end; peak, most_reserved: over the history; before: bytes that were in use
    when it began. row: of the last failure, else of the peak; at: what is alive there. failed: the last three.
    sampled: the stacks of some 2000 allocations, in the order of time.
    """

    device: int
    entries: int
    segments: int
    reserved: int
    used: int
    before: int
    seconds: float
    peak: int
    most_reserved: int
    row: int
    at: At
    free: Free
    failed: tuple[Failure, ...]
    kept: tuple[Kept, ...]
    sampled: tuple[int, ...]
    timeline: dict[str, list[float]]
    layers: tuple[Layer, ...] = ()


class _Summary(Struct, frozen=True):
    devices: tuple[Device, ...]
    frames: tuple[tuple[str, int, str], ...]
    stacks: tuple[tuple[int, ...], ...]
    settings: dict[str, str]
    steps: int


@dataclass(frozen=True)
class Memory:
    """One device of the snapshot at PATH. stacks: by number, the innermost frame first. steps: 0 where none are marked.

    name: what tells it from the others of the same reading, "" where it is the only one.
    """

    path: str
    device: Device
    stacks: tuple[tuple[Frame, ...], ...]
    settings: dict[str, str]
    steps: int
    name: str = ""

    def frames(self, stack: int) -> tuple[Frame, ...]:
        """The frames of a stack by its number; none for one that is not there."""
        return self.stacks[stack] if 0 <= stack < len(self.stacks) else ()


@dataclass(frozen=True)
class Snapshot:
    """All devices of all snapshots that were read."""

    memories: tuple[Memory, ...]
    inconclusive: tuple[Inconclusive, ...] = field(default=())


@view(Memory, of=Snapshot)
def _each(subject: Snapshot) -> Iterator[Memory]:
    if not subject.memories:
        raise CannotSee("no snapshot could be read", "Dump it again: torch.cuda.memory._dump_snapshot(path).")
    yield from subject.memories


def read(paths: Sequence[str]) -> Snapshot:
    """The snapshots at PATHS."""
    memories: list[Memory] = []
    unseen: list[Inconclusive] = []
    for answer in answers(_WORK, paths):
        try:
            if answer.value is None:
                raise ValueError(answer.why)
            summary = msgspec.convert(answer.value, _Summary)
        except ValueError as error:  # msgspec's is one
            unseen.append(Inconclusive("snapshot/read", f"{answer.path}: {error}", "Dump it again, or leave it out."))
            continue
        several = len(paths) > 1 or len(summary.devices) > 1
        made = [_memory(answer.path, device, summary, several) for device in summary.devices]
        memories += made
        unseen += _unseen(answer.path, made)
    return Snapshot(tuple(memories), tuple(unseen))


def _memory(path: str, device: Device, summary: _Summary, several: bool) -> Memory:
    frames = tuple(Frame(*row) for row in summary.frames)
    stacks = tuple(tuple(frames[number] for number in row) for row in summary.stacks)
    name = f"device {device.device} of {PurePath(path).name}" if several else ""
    return Memory(path, device, stacks, summary.settings, summary.steps, name)


def _unseen(path: str, memories: Sequence[Memory]) -> Iterator[Inconclusive]:
    if not memories:
        yield Inconclusive("snapshot/read", f"{path}: no device was in use", "Dump it from the process that trains.")
    elif not any(each.device.entries for each in memories):
        why = "holds no history: what grows, what failed and what the peak consists of cannot be told"
        yield Inconclusive("snapshot/history", f"{path} {why}", _RECORD)
    for each in memories:
        device = each.device
        told = sum(group.bytes for group in device.at.groups if group.stack)
        if device.entries and told < device.at.used / 2:
            part = 1 - told / max(device.at.used, 1)
            why = f"{path}: of {part:.0%} of the memory in use nobody recorded who allocated it"
            yield Inconclusive("snapshot/history", why, _RECORD)


def measurements(subject: Snapshot) -> dict[str, Any]:
    """devices: for each its figures, the timeline (at most 400 points) and the largest of what was alive at the row.

    row: the entry that is looked at, the last failure or the peak. layers: what the lines that hold most there hold at
    each point of the timeline, in bytes.
    """
    return {"devices": [_figures(each) for each in subject.memories]}


def _figures(memory: Memory) -> dict[str, Any]:
    device = memory.device
    names = ("device", "entries", "seconds", "peak", "most_reserved", "used", "reserved", "before", "segments", "row")
    failed = [
        {**msgspec.to_builtins(each), "stack": said(memory.frames(each.stack))} for each in device.failed
    ]  # fmt: skip
    return {
        "file": memory.path,
        **{name: getattr(device, name) for name in names},
        "free": msgspec.to_builtins(device.free),
        "failed": failed,
        "settings": memory.settings,
        "alive": [
            {"bytes": each.bytes, "blocks": each.blocks, "at": said(memory.frames(each.stack))}
            for each in device.at.groups[:_LARGEST]
        ],
        "timeline": device.timeline,
        "layers": _lines(memory),
    }


def _lines(memory: Memory) -> dict[str, list[int]]:
    """Stacks that meet in one line of the job are one layer."""
    found: dict[str, list[int]] = {}
    for layer in memory.device.layers:
        row = found.setdefault(said(memory.frames(layer.stack)), [0] * len(layer.bytes))
        row[:] = map(add, row, layer.bytes)
    return dict(list(found.items())[:_LINES])


def as_run(subject: Snapshot) -> dict[str, Any]:
    """By the names of a run: the most bytes that were in use and reserved, of the device that held most."""
    devices = [each.device for each in subject.memories if each.device.peak]
    if not devices:
        return {}
    most = {"allocated": max(each.peak for each in devices), "reserved": max(each.most_reserved for each in devices)}
    return {"memory": {name: {"highest": value} for name, value in most.items()}}

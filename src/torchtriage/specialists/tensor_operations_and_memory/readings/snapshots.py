"""What a CUDA memory snapshot says: what is full, what grows, what lies in pieces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from torchtriage.core.evidence import Place
from torchtriage.examine.artefact.frames import Frame, own, said
from torchtriage.examine.artefact.snapshot import Failure, Kept, Memory
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.specialists.tensor_operations_and_memory.readings import makers

GIB = 2**30
BIRTHS = 30  # of a stack that grows, as many as a run needs steps
FLOOR = 32 << 20  # bytes that are kept of them; memory-growth.md defends both
EVEN = 0.5  # of the most, at least, in each eighth of the history but the first two
PASSES = 8  # backward passes that follow forward ones, or steps that a profiler has marked
GRAPHS = 8  # kept, as of a run
ALIKE = 0.2  # of a block for each pass may be too few or too many
LAYERS = 3  # stacks of a forward pass that grow together with the loss
WENT_ON = 1000  # allocations after one that failed: what an error's handler asks for is less
_NAMED = 3  # places of each finding


@detector("snapshot/fragmentation")
def fragmentation(memory: Memory) -> Iterator[Sighting]:
    """An allocation failed that would have fitted into what the allocator keeps unused."""
    for failure in _ending(memory):
        unused = failure.reserved - failure.used
        if unused > failure.size and failure.largest < failure.size:
            largest = f", the largest {_size(failure.largest)}" if failure.largest >= 0 else ""
            pieces = f" in {failure.blocks} pieces{largest}" if failure.blocks > 0 else ""
            share = unused / max(failure.reserved + failure.device_free, 1)
            fact = f"{_asked(memory, failure)} while the allocator kept {_size(unused)} unused{pieces}"
            yield Sighting(_place(memory, memory.frames(failure.stack)), fact, share, "of the device")


@detector("snapshot/peak-by-activations")
def peak_by_activations(memory: Memory) -> Iterator[Sighting]:
    """An allocation failed while most of the memory was full of activations."""
    yield from _full_of(memory, "activations", (makers.ACTIVATIONS,))


@detector("snapshot/peak-by-states")
def peak_by_states(memory: Memory) -> Iterator[Sighting]:
    """An allocation failed while most of the memory was full of parameters, gradients and optimizer states."""
    yield from _full_of(memory, "states", (makers.PARAMETERS, makers.GRADIENTS, makers.STATES))


@detector("snapshot/memory-growth")
def memory_growth(memory: Memory) -> Iterator[Sighting]:
    """The same lines allocate again and again, over the whole history, what nobody frees."""
    rows = growing(memory)
    total = sum(row.bytes for row in rows)
    if total < FLOOR:
        return
    if _steps(memory) < PASSES:
        raise CannotSee(
            f"{_of(memory)}blocks pile up over the whole history, {_size(total)}, but fewer than {PASSES} steps can be "
            "told apart in it: one pass over many equal layers looks the same",
            "Record a longer history (max_entries), or under torch.profiler with a step() for each.",
        )
    turns = memory.steps or max(row.blocks for row in rows)
    turn = "step" if memory.steps else "time that it runs"
    for row in rows[:_NAMED]:
        frames = memory.frames(row.stack)
        fact = f"{_of(memory)}{row.blocks} blocks of {_size(row.bytes)} in all that {said(frames)} asked for are still "
        fact += f"alive: {_size(total / turns)} more each {turn}, to the end of the history"
        yield Sighting(_place(memory, frames), fact, row.bytes / turns / 1024, f"KiB per {turn.split()[0]}")


@detector("snapshot/graph-retained")
def graph_retained(memory: Memory) -> Iterator[Sighting]:
    """The activations of earlier passes are all still alive, together with their loss."""
    rows = [row for row in memory.device.kept if row.blocks >= GRAPHS and _is_even(row)]
    losses = [row for row in rows if makers.is_loss(memory.frames(row.stack))]
    alone = _steps(memory) < PASSES  # one pass may have a loss for each of its layers
    for loss in losses[:1] if not alone else ():
        layers = [
            row
            for row in rows
            if not makers.is_loss(memory.frames(row.stack))
            and makers.is_forward(memory.frames(row.stack))
            and _each_pass(row.blocks, loss.blocks)
        ]
        if len(layers) >= LAYERS:
            size = _size(sum(row.bytes for row in layers) + loss.bytes)
            fact = (
                f"{_of(memory)}{loss.blocks} losses and, of the same passes, what {len(layers)} places of the forward "
            )
            fact += f"pass allocated are still alive, {size}: activations stay as long as the graph does"
            yield Sighting(_place(memory, memory.frames(loss.stack)), fact, float(loss.blocks), "graphs")


def growing(memory: Memory) -> list[Kept]:
    """The stacks whose blocks pile up over the whole history, the largest first."""
    rows = [row for row in memory.device.kept if row.blocks >= BIRTHS and _is_even(row)]
    return [row for row in rows if not makers.is_state(memory.frames(row.stack))]


def _steps(memory: Memory) -> int:
    """As many as a profiler has marked; without marks, as can be told apart."""
    return memory.steps or makers.passes(memory)


def _is_even(row: Kept) -> bool:
    """A buffer that is filled at the start, and a window of the latest, are not."""
    later = row.parts[2:]
    return min(later) > 0 and min(later) >= EVEN * max(later)


def _each_pass(blocks: int, passes: int) -> bool:
    """Whether BLOCKS may be one, two or more for each of PASSES."""
    each = round(blocks / passes)
    return each > 0 and abs(blocks / passes - each) <= ALIKE


def _ending(memory: Memory) -> list[Failure]:
    """The last allocation that failed, if the job did not go on: one that looks for the largest batch does."""
    return [each for each in memory.device.failed[-1:] if each.after < WENT_ON]


def _full_of(memory: Memory, name: str, kinds: Sequence[str]) -> Iterator[Sighting]:
    """Only where memory ran out: what fills a device that never ran out of it is good use."""
    for failure in _ending(memory):
        parts = makers.parts(memory)
        if parts[makers.UNKNOWN] * 2 > memory.device.at.used:
            raise CannotSee(
                f"nobody recorded who allocated {_size(parts[makers.UNKNOWN])} of {_size(memory.device.at.used)}",
                "Call torch.cuda.memory._record_memory_history(max_entries=…) before the model is built.",
            )
        share = sum(parts[kind] for kind in kinds) / max(memory.device.at.used, 1)
        fact = f"{_asked(memory, failure)}{_short(failure)}: in use were {_told(parts)}"
        unit = f"of what is in use are {name}"
        yield Sighting(_place(memory, memory.frames(failure.stack)), fact, share, unit)
        yield from (Sighting(place, said, share, unit) for place, said in _largest(memory, kinds))


def _largest(memory: Memory, kinds: Iterable[str]) -> Iterator[tuple[Place, str]]:
    """The job's own lines that asked for most of it."""
    by_line: dict[tuple[str, int, str], list[int]] = {}
    for group in memory.device.at.groups:
        frame = own(memory.frames(group.stack))
        for kind, size in makers.purposes(memory, group):
            if kind in kinds and frame is not None and size:
                row = by_line.setdefault((frame.path, frame.line, kind), [0, 0])
                row[0], row[1] = row[0] + size, row[1] + group.blocks
    for (path, line, kind), (size, blocks) in sorted(by_line.items(), key=lambda row: -row[1][0])[:_NAMED]:
        fact = f"{_of(memory)}{_size(size)} of {kind} in {blocks} block{'s' if blocks > 1 else ''} come from here"
        yield Place(path=path, line=line), fact


def _asked(memory: Memory, failure: Failure) -> str:
    where, free = said(memory.frames(failure.stack)), _size(failure.device_free)
    return f"{_of(memory)}{_size(failure.size)} were asked for at {where} with {free} free on the device"


def _short(failure: Failure) -> str:
    """What would have to be less, at least: the device's free memory and the largest piece cannot be joined."""
    missing = failure.size - max(failure.device_free, failure.largest)
    return f", so that at least {_size(missing)} are too few" if missing > 0 else ""


def _told(parts: Counter[str]) -> str:
    shown = [f"{_size(size)} of {kind}" for kind, size in parts.most_common() if size > 0]
    return ", ".join(shown[:5])


def _size(size: float) -> str:
    for unit, name in ((GIB, "GiB"), (2**20, "MiB")):
        if size >= unit:
            return f"{size / unit:.2f} {name}"
    return f"{size / 1024:.1f} KiB"


def _of(memory: Memory) -> str:
    return f"{memory.name}: " if memory.name else ""


def _place(memory: Memory, frames: Sequence[Frame]) -> Place:
    """The job's own line; the snapshot itself where the stack has none."""
    frame = own(frames)
    return Place(path=frame.path, line=frame.line) if frame is not None else Place(path=memory.path)

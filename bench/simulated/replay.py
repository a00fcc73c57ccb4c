"""What a step would take without one of its causes: the events of a ledger, executed again by other rules.

A ledger tells when everything was launched, began and ended. Here that is taken apart into what the host did (launches,
naps, waits) and what each stream did (durations, and which operation of another stream it waited for), and put together
again without one of the causes. The share of the step that is gained is what the cause costs: a bottleneck by
experiment, not by a rule of thumb. Nothing here knows how torchtriage reads a run.

All times are nanoseconds on the simulated host's clock.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torchtriage.simulation import Collective, Copy, Costs, Kernel, Ledger, Synchronisation

CAUSES = ("launch", "kernel", "transfer", "input", "loop", "sync", "communication", "peer")
"""launch: the host's time for each operation. kernel: computing. transfer: copies between host and device, with the
waits for those to the device. input, loop: naps within and outside of a loader. sync: other waits of the host.
communication: collectives once all ranks have come. peer: waiting for another rank to come."""

Operation = Kernel | Copy | Collective
Stream = tuple[int, int]
_OWN = -1
"""The stream of collectives, which the ledger does not name."""


@dataclass
class Event:
    """One thing that the host does: launches an operation on STREAM, waits, naps, or ends a step.

    length: of the operation or nap. needs: the operation (by its number) that a wait or another stream's operation
    waits for. late: how long a collective waits for other ranks, once its own stream is there. cause: which of CAUSES
    the event costs.
    """

    cause: str
    time: int
    stream: Stream | None = None
    length: int = 0
    needs: int | None = None
    late: int = 0
    line: int = 0
    waited: int = 0


@dataclass
class Replay:
    """The events of a ledger in the order of the host, ready to be executed again.

    marks: the naps' and steps' journal of the process (child.py).
    """

    ledger: Ledger
    journal: Mapping[str, Any]
    costs: Costs
    events: list[Event] = field(init=False)

    def __post_init__(self) -> None:
        self.events = list(self._events())

    def step(self, without: str | None = None, skip: int = 0) -> float:
        """Nanoseconds of a step from the mark SKIP on to the last, with WITHOUT taken away."""
        marks = self.marks(without)
        return (marks[-1] - marks[skip]) / (len(marks) - 1 - skip)

    def gain(self, cause: str, skip: int = 0) -> float:
        """The share of a step that is gained without CAUSE."""
        return 1.0 - self.step(cause, skip) / self.step(None, skip)

    def marks(self, without: str | None = None) -> list[int]:
        """When each step ends: the host has come to its mark, and the devices have done what was launched before."""
        return self._executed(without)[0]

    def ends(self) -> list[int]:
        """When each operation ends: what the ledger says, if the rules here are those of the device."""
        return self._executed(None)[1]

    def _executed(self, without: str | None) -> tuple[list[int], list[int]]:
        host, ends, stream_ends = 0, list[int](), defaultdict[Stream, int](int)
        queues: dict[Stream, deque[int]] = defaultdict(deque)
        launch = 0 if without == "launch" else self.costs.launch
        found = [0]
        for event in self.events:
            if event.cause == "mark":
                found.append(max(host, *stream_ends.values()) if stream_ends else host)
            elif event.stream is not None:
                queue = queues[event.stream]
                if len(queue) >= self.costs.queue:
                    host = max(host, queue.popleft())
                host += launch
                start = max(host, stream_ends[event.stream], 0 if event.needs is None else ends[event.needs])
                start += 0 if without == "peer" else event.late
                end = start + (0 if event.cause == without else event.length)
                ends.append(end)
                queue.append(end)
                stream_ends[event.stream] = end
            elif event.needs is not None and event.cause != without:
                host = max(host, ends[event.needs])
            elif event.cause in {"input", "loop"} and event.cause != without:
                host += event.length
        return found, ends

    def waits(self) -> Iterator[Event]:
        """The waits of the host for the device, without those for copies to it."""
        return (event for event in self.events if event.cause == "sync")

    def _events(self) -> Iterator[Event]:
        operations = self._operations()
        by_end: dict[int, list[int]] = defaultdict(list)
        for number, each in enumerate(operations):
            by_end[each.end].append(number)
        launched = [each.launched for each in operations]
        made = list(self._launches(operations, by_end))
        rest = [
            *(self._wait(each, operations, launched, by_end) for each in self.ledger.synchronisations),
            *(
                Event("input" if nap["loader"] else "loop", nap["begun"], length=nap["ended"] - nap["begun"])
                for nap in self.journal["naps"]
            ),
            *(Event("mark", time) for time in self.journal["marks"][1:]),
        ]
        # sorted is stable: an operation comes before what begins at the moment of its launch
        yield from sorted([*made, *rest], key=lambda event: event.time)

    def _operations(self) -> list[Operation]:
        ledger = self.ledger
        return sorted([*ledger.kernels, *ledger.copies, *ledger.collectives], key=lambda each: each.launched)

    @staticmethod
    def _launches(operations: Sequence[Operation], by_end: Mapping[int, list[int]]) -> Iterator[Event]:
        before: dict[Stream, int] = defaultdict(int)
        for number, each in enumerate(operations):
            ready = each.ready if isinstance(each, Collective) else each.start
            stream, needs = stream_of(each), None
            if ready > max(each.launched, before[stream]):
                needs = next((n for n in reversed(by_end.get(ready, ())) if n < number), None)
            late = each.start - max(ready, before[stream]) if isinstance(each, Collective) else 0
            before[stream] = each.end
            yield Event(cause_of(each), each.launched, stream, each.end - each.start, needs, late)

    def _wait(
        self,
        each: Synchronisation,
        operations: Sequence[Operation],
        launched: Sequence[int],
        by_end: Mapping[int, list[int]],
    ) -> Event:
        known = [n for n in by_end.get(each.ended, ()) if operations[n].launched <= each.begun]
        needs = known[-1] if known and each.waited else None
        last = operations[needs] if needs is not None else None
        if last is None and (place := bisect_left(launched, each.begun + 1)):
            last = operations[place - 1]
        is_copy = isinstance(last, Copy) and last.kind == "host-to-device" and each.call == "copy_"
        return Event("transfer" if is_copy else "sync", each.begun, None, 0, needs, 0, each.line, each.waited)


def stream_of(each: Operation) -> Stream:
    return (each.device, _OWN if isinstance(each, Collective) else each.stream)


def cause_of(each: Operation) -> str:
    if isinstance(each, Collective):
        return "communication"
    if isinstance(each, Copy):
        return "kernel" if each.kind == "device-to-device" else "transfer"
    return "kernel"

"""Where each rank stood when the training no longer moved, and how it ended: from what the ranks wrote themselves."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from torchtriage.examine.run.record import Event, RankRecord, RunRecord

PAUSE = 30.0  # seconds that a rank has stood when it is asked; less is what any training has between two steps
_BY_OTHERS = re.compile(  # what a group says when another of its processes has gone, or does not come
    r"connection (?:closed|reset|was closed)|closed by peer|broken pipe|socket timeout|time(?:d\s*|-|\s)?out|"
    r"remote (?:process|worker)|store.*(?:failed|closed)|gloo|nccl",
    re.I,
)
_OF_GROUPS = frozenset({"RuntimeError", "DistError", "DistBackendError", "DistNetworkError", "DistStoreError"})
_ASKED = ("hang-after", "dump")  # by whom nothing is told of what moves
TIMEOUT = re.compile(r"time(?:d\s*|-|\s)?out", re.I)
DTYPES = {
    "torch.float32": "Float", "torch.float64": "Double", "torch.float16": "Half", "torch.bfloat16": "BFloat16",
    "torch.int64": "Long", "torch.int32": "Int", "torch.int16": "Short", "torch.int8": "Char", "torch.uint8": "Byte",
    "torch.bool": "Bool",
}  # fmt: skip


@dataclass(frozen=True)
class Stand:
    """One rank at its last moment.

    how: "waits" for other ranks, "still" (two looks apart it had not moved), "busy" (it works), "seen" (one look only),
    "failed" (with an error of its own), "lost" (with an error that another rank's absence makes), "ended" (its script
    was over), "silent" (it wrote nothing more), "moves", "past" (by its
    Flight Recorder dump no collective is under way). seconds: for how long. stack: [path, line, function, loop] of
    the user's frames, the innermost first. call: what of torch.distributed it has called. collectives: its last ones.
    last: number of the last one by group. groups: ranks by group. batches, forwards, backwards: so many so far. rounds:
    function and first line of the loops in which it has updated; none where no record tells of that.
    """

    rank: int
    how: str
    step: int = 0
    seconds: float = 0.0
    stack: tuple[list[Any], ...] = ()
    call: Event | None = None
    training: bool = False
    collectives: tuple[Event, ...] = ()
    last: dict[str, int] = field(default_factory=dict)
    groups: dict[str, list[int]] = field(default_factory=dict)
    batches: int = 0
    forwards: int = 0
    backwards: int = 0
    rounds: frozenset[tuple[str, int]] = frozenset()
    error: Event | None = None
    meeting: Event | None = None

    @property
    def place(self) -> tuple[str | None, int | None]:
        """File and line of the user's innermost frame, as far as that is known."""
        if self.stack:
            return str(self.stack[0][0]), int(self.stack[0][1])
        known = next((each for each in (self.error, self.meeting) if each is not None and each.get("path")), None)
        return (str(known["path"]), int(known["line"])) if known is not None else (None, None)

    @property
    def loops(self) -> set[tuple[str, int]]:
        """Function and first line of the loops that it is in, as far as they are known."""
        if self.meeting is not None and not self.stack:
            return {(str(name), int(line)) for name, line in self.meeting.get("loops") or ()}
        return {(str(row[2]), int(first)) for row in self.stack for first in row[3]}

    @property
    def begun(self) -> int:
        """Training steps that it has begun: backward passes, and the pass that is under way."""
        passes = self.backwards or int((self.meeting or {}).get("backwards") or 0)
        return passes + (self.training or self.cut_off)

    @property
    def cut_off(self) -> bool:
        """Whether its process ended at once within a backward pass in which gradients are averaged."""
        meeting = self.meeting or {}
        return self.how == "silent" and meeting.get("op") == "backward" and not meeting.get("done")

    @property
    def entries(self) -> dict[tuple[str, int], Event]:
        """Its collectives by group and number, sends and receives left out."""
        return {(str(each["group"]), int(each["seq"])): each for each in self.collectives if not each.get("p2p")}

    @property
    def awaited(self) -> Event | None:
        """The first collective that has not ended; of one that has given up, the last that it asked for."""
        entries = sorted(self.entries.values(), key=lambda each: each.get("created") or 0)
        pending = next((each for each in entries if each.get("pending")), None)
        if pending is None and self.how == "lost" and entries:
            return entries[-1]
        return pending


def stands(record: RunRecord) -> dict[int, Stand]:
    """By rank."""
    return {rank.rank: _of(rank) for rank in record.ranks}


def _of(record: RankRecord) -> Stand:
    error = next(iter(record.all("error")), None)
    known = next((each for each in reversed(record.events) if each.get("kind") in {"hang", "reached"}), {})
    meeting = next((each for each in reversed(record.all("meeting"))), None)
    if error is not None:
        of_group = error.get("error") in _OF_GROUPS and _BY_OTHERS.search(str(error.get("message")))
        how = "lost" if of_group else "failed"
        return _made(record, how, known if known.get("why") == "error" else {}, error=error, meeting=meeting)
    if record.all("end"):
        return _made(record, "ended", known if known.get("kind") == "reached" else {})
    hang = _standing(record)
    if hang is not None:
        return _made(record, str(hang.get("state")), hang)
    if known.get("why") == "signal":
        return _made(record, "moves", known)
    return _made(record, "silent", {}, meeting=meeting)


def _standing(record: RankRecord) -> Event | None:
    """The event that tells where the rank stands, if it has not moved since."""
    found: Event | None = None
    for event in record.events:
        kind = event.get("kind")
        if kind == "hang" and (event.get("why") in _ASKED or (event.get("seconds") or 0) >= PAUSE):
            found = found if found is not None and event.get("why") == "signal" else event
        elif kind == "moved" or (kind == "step" and found is not None and _after(event, found)):
            found = None
    return found


def _after(step: Event, hang: Event) -> bool:
    return (step.get("step") or 0) > (hang.get("step") or 0)


def _made(record: RankRecord, how: str, event: Event, **more: Any) -> Stand:
    meetings = record.all("meeting")
    return Stand(
        record.rank,
        how,
        int(event.get("step") or record.count),
        float(event.get("seconds") or 0),
        tuple(event.get("stack") or ()),
        event.get("call"),
        bool(event.get("training")),
        tuple(_placed(each, meetings) for each in event.get("collectives") or ()),
        event.get("last") or {},
        event.get("groups") or {},
        int(event.get("batches") or 0),
        int(event.get("forwards") or 0),
        int(event.get("backwards") or 0),
        frozenset((str(name), int(line)) for told in record.all("rounds") for name, line in told.get("loops") or ()),
        **more,
    )


def _placed(entry: Event, meetings: list[Event]) -> Event:
    """ENTRY with the line of the call within which it was made, the last that began before it."""
    if entry.get("path"):
        return entry
    created = entry.get("created") or 0
    asked = next((each for each in reversed(meetings) if (each.get("at") or 0) <= created), None)
    return {**entry, "path": asked["path"], "line": asked["line"]} if asked is not None else entry

"""Where each rank stood when the training no longer moved, and how it ended: from what the ranks wrote themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from torchtriage.examine.run.job.events import (
    Call,
    Collective,
    End,
    Error,
    Hang,
    Meeting,
    Moved,
    Reached,
    Rounds,
    Step,
)
from torchtriage.examine.run.record import RankRecord, RunRecord

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
    was over), "silent" (it wrote nothing more), "moves", "past" (by its Flight Recorder dump no collective is under
    way). seconds: for how long. What follows stands in its Hang or Reached. rounds: function and first line of the
    loops in which it has updated; none where no record tells of that. meeting: its last.
    """

    rank: int
    how: str
    step: int = 0
    seconds: float = 0.0
    stack: Sequence[tuple[str, int, str, Sequence[int]]] = ()
    call: Call | None = None
    training: bool = False
    collectives: tuple[Collective, ...] = ()
    last: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, Sequence[int]] = field(default_factory=dict)
    batches: int = 0
    forwards: int = 0
    backwards: int = 0
    rounds: frozenset[tuple[str, int]] = frozenset()
    error: Error | None = None
    meeting: Meeting | None = None

    @property
    def place(self) -> tuple[str | None, int | None]:
        """File and line of the user's innermost frame, as far as that is known."""
        if self.stack:
            return self.stack[0][0], self.stack[0][1]
        known = next((each for each in (self.error, self.meeting) if each is not None and each.path), None)
        return (known.path, known.line) if known is not None else (None, None)

    @property
    def loops(self) -> set[tuple[str, int]]:
        """Function and first line of the loops that it is in, as far as they are known."""
        if self.meeting is not None and not self.stack:
            return {(name, line) for name, line in self.meeting.loops}
        return {(name, first) for _, _, name, loops in self.stack for first in loops}

    @property
    def begun(self) -> int:
        """Training steps that it has begun: backward passes, and the pass that is under way."""
        passes = self.backwards or (self.meeting.backwards if self.meeting is not None else 0)
        return passes + (self.training or self.cut_off)

    @property
    def cut_off(self) -> bool:
        """Whether its process ended at once within a backward pass in which gradients are averaged."""
        meeting = self.meeting
        return self.how == "silent" and meeting is not None and meeting.op == "backward" and not meeting.done

    @property
    def entries(self) -> dict[tuple[str, int], Collective]:
        """Its collectives by group and number, sends and receives left out."""
        return {(each["group"], each["seq"]): each for each in self.collectives if not each.get("p2p")}

    @property
    def awaited(self) -> Collective | None:
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
    error, known = record.first(Error), next(reversed(record.among(Hang, Reached)), Reached())
    meeting = next(reversed(record.all(Meeting)), None)
    if error is not None:
        is_of_group = error.error in _OF_GROUPS and _BY_OTHERS.search(error.message)
        look = known if known.why == "error" else Reached()
        return _made(record, "lost" if is_of_group else "failed", look, error, meeting)
    if record.has(End):
        return _made(record, "ended", Reached() if isinstance(known, Hang) else known)
    hang = _standing(record)
    if hang is not None:
        return _made(record, hang.state, hang)
    if known.why == "signal":
        return _made(record, "moves", known)
    return _made(record, "silent", Reached(), meeting=meeting)


def _standing(record: RankRecord) -> Hang | None:
    """What tells where the rank stands, if it has not moved since."""
    found: Hang | None = None
    for event in record.since(Hang).among(Hang, Moved, Step):
        if isinstance(event, Hang):
            if event.why in _ASKED or event.seconds >= PAUSE:
                found = found if found is not None and event.why == "signal" else event
        elif isinstance(event, Moved) or (found is not None and event.step > found.step):
            found = None
    return found


def _made(
    record: RankRecord, how: str, look: Reached, error: Error | None = None, meeting: Meeting | None = None
) -> Stand:
    hang = look if isinstance(look, Hang) else Hang()
    meetings = record.all(Meeting)
    return Stand(
        record.rank,
        how,
        look.step or record.count,
        hang.seconds,
        hang.stack,
        hang.call,
        hang.training,
        tuple(_placed(each, meetings) for each in look.collectives),
        look.last,
        look.groups,
        look.batches,
        look.forwards,
        look.backwards,
        frozenset((name, line) for told in record.all(Rounds) for name, line in told.loops),
        error,
        meeting,
    )


def _placed(entry: Collective, meetings: list[Meeting]) -> Collective:
    """ENTRY with the line of the call within which it was made, the last that began before it."""
    if entry.get("path"):
        return entry
    created = entry.get("created") or 0
    asked = next((each for each in reversed(meetings) if each.at <= created), None)
    return {**entry, "path": asked.path, "line": asked.line} if asked is not None else entry

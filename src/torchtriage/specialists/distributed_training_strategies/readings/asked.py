"""Ranks and their collectives in words, and when two of them are not the same."""

from __future__ import annotations

from collections.abc import Iterable

from torchtriage.examine.run.job.events import Collective, Error, Meeting
from torchtriage.examine.run.ranks.stood import DTYPES, Stand

EQUAL = frozenset(  # whose data has the same size on all ranks
    {
        "all_reduce", "allreduce", "broadcast", "reduce", "all_gather_into_tensor", "_all_gather_base",
        "reduce_scatter_tensor", "_reduce_scatter_base", "all_reduce_coalesced", "allreduce_coalesced",
    }
)  # fmt: skip
MOST = 8  # ranks that are named


def unlike(last: Meeting, entry: Collective, other: Stand) -> bool:
    """Whether the collective of a process that has ended was another one than that of a rank that is left."""
    if last.op == "backward":
        return not other.training  # DistributedDataParallel averages there, and the other rank averages nothing
    sizes = entry.get("sizes") or [[]]
    if entry["op"].replace("_", "") != last.op.replace("_", ""):
        return True
    if entry["op"] not in EQUAL:
        return False
    dtypes = entry.get("dtypes") or [""]
    return numel(sizes) != last.size or (last.dtype in DTYPES and DTYPES[last.dtype] != dtypes[0])


def differ(one: Collective, other: Collective) -> bool:
    if one["op"] != other["op"]:
        return True
    if one["op"] not in EQUAL:
        return False
    return numel(one["sizes"]) != numel(other["sizes"]) or one["dtypes"] != other["dtypes"]


def numel(sizes: Iterable[Iterable[int]]) -> int:
    """Values in all tensors together."""
    total = 0
    for shape in sizes:
        number = 1
        for size in shape:
            number *= size
        total += number
    return total


def what_of(entry: Collective) -> str:
    sizes = entry.get("sizes") or []
    if not sizes:
        return entry["op"]
    return f"{entry['op']} of {numel(sizes)} {', '.join(sorted(set(entry['dtypes'])))}"


def own_of(meeting: Meeting) -> str:
    if meeting.op == "backward":
        return "a backward pass, which averages gradients,"
    dtype = DTYPES.get(meeting.dtype, meeting.dtype)
    return f"{meeting.op} of {meeting.size} {dtype}" if dtype else meeting.op


def where(stand: Stand) -> str:
    path, line = stand.place
    at = f" at {path}:{line}" if path else ""
    if stand.how in {"ended", "past"}:
        return _over(stand)
    if stand.how == "lost":
        return f"gave up{at}"
    if stand.how == "waits":
        entry = stand.awaited
        what = stand.call.get("op") if stand.call else None
        return f"waits in {what or (number_of(entry) if entry else '')}{at}"
    if stand.how in {"moves", "seen", "busy"}:
        return f"was{at} then"
    if stand.how == "silent":
        return f"was in {own_of(stand.meeting or Meeting())}{at} when its process ended at once"
    within = f" ({stand.stack[0][2]})" if stand.stack and stand.stack[0][2] != "<module>" else ""
    return f"stands{at}{within}, {lasting(stand)}, and does not move"


def _over(stand: Stand) -> str:
    """Of a rank that has left its last collective, from where it may have gone on."""
    if stand.how == "ended":
        return f"has ended after {stand.step} steps"
    last = max(stand.entries.values(), key=lambda each: each.get("created") or 0, default=None)
    if last is None:
        return "has asked for no collective at all"
    at = f" at {last.get('path')}:{last.get('line')}" if last.get("path") else ""
    return f"has asked for nothing since {number_of(last)}{at}"


def number_of(entry: Collective) -> str:
    return f"{entry['op']} number {entry['seq']} of group {entry['group']}"


def lasting(stand: Stand) -> str:
    return f"for {stand.seconds:.3g} s" if stand.seconds else "to no end"


def unit(stand: Stand) -> str | None:
    return "s" if stand.seconds else None


def named(ranks: Iterable[int]) -> str:
    several = list(ranks)
    told = ", ".join(map(str, several[:MOST])) + (f" and {len(several) - MOST} more" if len(several) > MOST else "")
    return f"rank {told}" if len(several) == 1 else f"ranks {told}"


def short(error: Error | None) -> str:
    return " ".join(error.message.split())[:200] if error is not None else ""


def settled(stand: Stand) -> bool:
    return stand.how in {"waits", "still", "ended", "lost", "past"}

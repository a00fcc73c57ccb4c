"""Where each rank of a job that stands still is, by the names of the interface."""

from __future__ import annotations

from typing import Any

from torchtriage.examine.run.job.events import Call
from torchtriage.examine.run.ranks.stood import TIMEOUT, Stand, stands
from torchtriage.examine.run.record import RunRecord

STANDING = frozenset({"waits", "still"})


def hung(record: RunRecord) -> list[dict[str, Any]]:
    """A row for each rank, the ones that have ended or failed among them; none where nobody waits in vain.

    `state` is how the rank stands, `seconds` for how long; `waits_in`, `seq` and `group` are the collective that it
    waits in, or has given up, as far as the Flight Recorder or its last call tells.
    """
    at = stands(record)
    return [_row(each) for each in at.values()] if _in_vain(list(at.values())) else []


def _in_vain(at: list[Stand]) -> bool:
    """Whether somebody waits, or has given up, for one that does not come. An error that all ranks have in the same
    collective, of a backend that cannot do it, is none of that.
    """
    lost = [each for each in at if each.how == "lost"]
    asked = {each.awaited["seq"] if each.awaited else None for each in lost}
    late = any(each.error is not None and TIMEOUT.search(each.error.message) for each in lost)
    return any(each.how in STANDING for each in at) or (bool(lost) and (len(lost) < len(at) or len(asked) > 1 or late))


def _row(stand: Stand) -> dict[str, Any]:
    path, line = stand.place
    entry = stand.awaited if stand.how in {"waits", "lost"} else None
    named = Call(op=entry["op"], group=entry["group"]) if entry else stand.call if stand.how == "waits" else None
    call = named or Call()
    return {
        "rank": stand.rank,
        "step": stand.step,
        "seconds": stand.seconds or None,
        "waits_in": call.get("op"),
        "seq": entry["seq"] if entry else None,
        "group": call.get("group"),
        "path": path,
        "line": line,
        "state": stand.how,
        "error": stand.error.error if stand.error is not None else None,
    }

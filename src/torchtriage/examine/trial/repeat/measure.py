"""The figures of a repetition, as plain JSON values."""

from __future__ import annotations

from typing import Any

from torchtriage.examine.trial.repeat.compare import Difference
from torchtriage.examine.trial.repeat.trial import Repeat


def measurements(found: Repeat) -> dict[str, Any]:
    """What was compared, where the runs part by the first pair and by the second look, and what was held still."""
    told: dict[str, Any] = {
        "steps": found.steps,
        "steps_of_legs": list(found.counts),
        "codes": [ended.code for ended in found.ends],
        "ranks": len(found.one.by_rank.keys() & found.other.by_rank.keys()),
        "marks": sum(each.marks for each in found.one.ranks),
        "first_pass": _place(found.seen),
        "place": _place(found.place),
        "shifting": found.shifting,
        "tried": [
            {"held": each.what, "equal": each.equal, "steps": each.steps, "step_time": list(each.seconds)}
            for each in found.tried
        ],
        "explained_by": found.explained.what if found.explained else None,
        "samples_in_common": found.reordered,
    }
    if found.origin is not None:
        told["operation"] = {"name": found.origin.op, "how": found.origin.how, "path": found.origin.path or None,
                             "line": found.origin.line or None}  # fmt: skip
    return {"repro": told}


def _place(place: Difference | None) -> dict[str, Any] | None:
    if place is None:
        return None
    return {"rank": place.rank, "step": place.step, "phase": place.phase, "module": place.module}

"""Numbers that a training's code keeps by itself: the epoch, the step, the best metric, what it schedules by hand."""

from __future__ import annotations

import re
from typing import Any

from torchtriage.catalog.load import catalog
from torchtriage.examine.trial.resume.trial import Part, Resumed, Unit
from torchtriage.specialists.checkpointing_and_reproducibility.resuming.words import Missing, of_part, title

_EPOCHS = frozenset({"ep", "cur_epoch", "epoch_idx", "epoch_num", "epoch_number", "curr_epoch"})
_STARTS = re.compile(r"^(?:start|first|resume|next|init|begin|last|prev|from|num|n|max|total)_|s_run$|s_trained$")
_STEPS = frozenset(
    {"total_steps", "global_iter", "updates", "num_update", "optimizer_steps", "opt_steps", "steps_done"}
)
_GIVEN = re.compile(r"^(?:args?|opts?|cfg|config|conf|hparams|ckpt|checkpoint|state|payload|saved|blob)\b", re.I)
_MEASURES = re.compile(
    r"loss|acc|time|elapsed|start|t0|seen|total|running|sum|count|history|best|correct|metric|speed|norm|path|resume|ckpt",
    re.I,
)
_SHOWN = 3


def missing(resumed: Resumed) -> list[Missing]:
    """The epoch, the step and the best metric, where they are not what they were."""
    found: dict[str, Missing] = {}
    for part in resumed.parts:
        row = part.rows[0]
        if part.kind != "number" or row.gone or not (_is_number(row.before) and _is_number(row.after)):
            continue
        slug = _slug(part, resumed)
        if slug and slug not in found:
            found[slug] = of_part(slug, part)
    return [found[slug] for slug in ("epoch", "step", "best-metric") if slug in found]


def unexplained(resumed: Resumed) -> list[Missing]:
    """The numbers that could explain why the job goes on in another way, when all else is the same."""
    parts = [part for part in resumed.parts if part.kind == "number" and _may_explain(part, resumed)]
    likely = [part for part in parts if not _MEASURES.search(part.holder)] or parts
    likely.sort(key=lambda part: (not part.rows[0].anew, part.holder.count("."), part.holder))
    if not likely:
        what = min(resumed.course.apart.items(), key=lambda each: each[1], default=("length", resumed.course.units))
        fact = f"{title('unknown')}: all {resumed.entries} entries are the same, and the {what[0]} differs"
        return [Missing("unknown", "", f"{fact} from the {what[1] + 1}. resumed pass on")]
    others = [f"{part.holder} ({part.rows[0].before} and {part.rows[0].after})" for part in likely[1 : 1 + _SHOWN]]
    more = f"; all else is the same, but for {', '.join(others)}" if others else "; all else is the same"
    return [of_part("hyperparameter", likely[0], more=more)]


def _may_explain(part: Part, resumed: Resumed) -> bool:
    row = part.rows[0]
    plain = _is_number(row.before) or isinstance(row.before, (bool, str))
    if row.gone or not plain or _GIVEN.search(part.holder) or _STARTS.search(_leaf(part.holder)):
        return False
    return not _is_place(part.holder, resumed) and len(set(_series(part.holder, resumed))) > 1


def _slug(part: Part, resumed: Resumed) -> str:
    leaf, components = _leaf(part.holder).lower(), catalog().components
    if _GIVEN.search(part.holder) or _STARTS.search(leaf):
        return ""
    if "best" in leaf:
        return "best-metric"
    if leaf in _EPOCHS or leaf in components["epoch"].keys:
        apart = resumed.course.apart or resumed.course.missing or resumed.course.missing is None
        return "epoch" if apart else ""
    if leaf in _STEPS or leaf in components["step"].keys:
        counts = isinstance(part.rows[0].before, int) and len(set(_series(part.holder, resumed))) > 1
        return "step" if counts and not _is_place(part.holder, resumed) else ""
    return ""


def _leaf(label: str) -> str:
    words = re.findall(r"\w+", label)
    return words[-1] if words else label


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _series(label: str, resumed: Resumed) -> list[Any]:
    """The values of a number in each unit of the job that went on."""
    return [value for _, value in _with_units(label, (*resumed.stood[: resumed.unit], *resumed.before))]


def _with_units(label: str, units: tuple[Unit, ...]) -> list[tuple[Unit, Any]]:
    found: list[tuple[Unit, Any]] = []
    value: Any = None
    for unit in units:
        value = unit.told.get("numbers", {}).get(label, value)
        if value is not None:
            found.append((unit, value))
    return found


def _is_place(label: str, resumed: Resumed) -> bool:
    """Whether it is the number of a batch in its pass over the loader, which a resumed pass counts anew.

    It is where it goes back as a pass begins; of one pass only, where both jobs count it from that pass's beginning.
    """
    units = (*resumed.stood[: resumed.unit], *resumed.before)
    ahead, own = _with_units(label, units), _with_units(label, resumed.after)
    if not ahead or not own or not all(isinstance(value, int) for _, value in (*ahead, *own)):
        return False
    firsts: dict[Any, int] = {}
    for unit, value in ahead:
        firsts.setdefault(unit.told.get("pass"), value)
    if len(firsts) > 1:
        return len(set(firsts.values())) == 1
    return bool(_place(ahead[0][0])) and ahead[0][1] - _place(ahead[0][0]) == own[0][1] - _place(own[0][0])


def _place(unit: Unit) -> int:
    value = unit.told.get("place")
    return value if isinstance(value, int) else 0

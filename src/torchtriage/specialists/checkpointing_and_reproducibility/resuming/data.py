"""Batches and generators of random numbers: which of them is the root, and which follows from it."""

from __future__ import annotations

from typing import Any

from torchtriage.examine.trial.resume.trial import Resumed, Unit
from torchtriage.specialists.checkpointing_and_reproducibility.resuming.words import Missing, of_part, title

RNG = ("rng-torch", "rng-numpy", "rng-python", "rng-device")


def missing(resumed: Resumed, known: set[str]) -> list[Missing]:
    """The place in the data, its order, the generators; of these the one from which the others follow."""
    if not resumed.course.apart and not resumed.course.missing:
        return []  # whatever a generator's state is, nothing came of it
    same = _has_same_samples(resumed)
    own, draws = _own_generators(resumed), _not_restored(resumed, in_order=same)
    if not same:
        place = _other_place(resumed)
        if place and (not draws or _is_of_this_course(resumed)):
            return [Missing("data-position", "", place)]
        return own or draws or [_order(resumed)]
    if resumed.course.apart.get("batch") == 0:
        return own or draws or _otherwise(resumed, known)
    found = own + draws
    if not found and "batch" in resumed.course.apart and not known:
        found = [_order(resumed)]
    return found


def _has_same_samples(resumed: Resumed) -> bool:
    ids = _id(resumed.before[0]) if resumed.before else None, _id(resumed.after[0])
    return ids[0] == ids[1] if None not in ids else resumed.course.apart.get("batch") != 0


def _id(unit: Unit) -> tuple[Any, ...] | None:
    """Which samples a batch holds, in order."""
    told = unit.told.get("indices") or unit.told.get("rows")
    return tuple(told) if told else None


def _own_generators(resumed: Resumed) -> list[Missing]:
    return [of_part("generator", part) for part in resumed.parts if part.kind == "generator" and not part.rows[0].gone]


def _not_restored(resumed: Resumed, *, in_order: bool) -> list[Missing]:
    """The generators that are drawn from and differ.

    Where the batches are not in order, one that was put back as the pass began differs since they were drawn otherwise.
    """
    parts = {part.kind: part for part in resumed.parts}
    lacking = [parts[name] for name in RNG if name in parts and _is_drawn_from(name, resumed)]
    return [of_part(part.kind, part) for part in lacking if in_order or not _was_put_back(part.kind, resumed)]


def _is_drawn_from(name: str, resumed: Resumed) -> bool:
    alone = (resumed.stood, resumed.before, resumed.after)  # of one process each
    return any(len({unit.told.get("rng", {}).get(name) for unit in units}) > 1 for units in alone)


def _was_put_back(name: str, resumed: Resumed) -> bool:
    """Whether, within an epoch, torch's generator was in a state that the stopped job had as it saved or began it."""
    began = {resumed.began.get(name), *resumed.saved.get(name, ())}
    return name == "rng-torch" and not _is_boundary(resumed) and bool(began & set(resumed.begins.get(name, ())))


def _is_boundary(resumed: Resumed) -> bool:
    """Whether the resume falls between two passes over the loader."""
    return bool(resumed.before) and resumed.before[0].told.get("place") in (0, 1)


def _is_of_this_course(resumed: Resumed) -> bool:
    """The batches that follow are those of another place, too; not those with which any job begins from its seed."""
    found = _found_at(resumed)
    if found is None or found.number:
        return found is not None
    return bool(found.told.get("pass")) and resumed.before[0].told.get("pass") == found.told.get("pass")


def _found_at(resumed: Resumed) -> Unit | None:
    """The unit of the uninterrupted job whose batches the resumed one reads from its first on."""
    units = (*resumed.stood[: resumed.unit], *resumed.before)
    ids = [_id(unit) for unit in units]
    wanted = [_id(unit) for unit in resumed.after[:3]]
    for at in range(len(ids)):
        same = ids[at : at + len(wanted)] == wanted[: len(ids) - at] and wanted[0]
        if same and units[at].number != resumed.unit and not _is_as_far(units[at], resumed):
            return units[at]
    return None


def _is_as_far(unit: Unit, resumed: Resumed) -> bool:
    """As far into its pass as the first resumed one should be: then the place is kept, and the order is another's."""
    place = unit.told.get("place")
    return bool(place) and place == resumed.before[0].told.get("place") == resumed.after[0].told.get("place")


def _other_place(resumed: Resumed) -> str:
    """In words, where the resumed job reads on; "" where that is no other place of the same order."""
    found = _found_at(resumed)
    here = f"{title('data-position')} is another one"
    if found is not None:
        return f"{here}: the batch of pass {found.number + 1} is read where it is the turn of {resumed.unit + 1}"
    first, there = resumed.after[0].told.get("place"), resumed.before[0].told.get("place") if resumed.before else None
    longer = resumed.course.missing
    if first == 1 and there not in (None, 0, 1) and longer:
        how = (
            f"the epoch begins anew, {-longer} passes more in all"
            if longer < 0
            else f"the rest of the epoch is left out, {longer} passes less in all"
        )
        return f"{here}: the stopped job had had {there - 1} batches of the epoch; {how}"
    return ""


def _order(resumed: Resumed) -> Missing:
    first = resumed.course.apart.get("batch", 0)
    which = [_shown(units[first]) for units in (resumed.before, resumed.after) if len(units) > first]
    told = f": the {first + 1}. resumed batch has {which[1]} where it had {which[0]}" if len(which) == 2 else ""
    return Missing("data-order", "", f"{title('data-order')} is another one{told}")


def _shown(unit: Unit) -> str:
    indices = unit.told.get("indices")
    return f"samples {', '.join(map(str, indices[:6]))}…" if indices else "other samples"


def _otherwise(resumed: Resumed, known: set[str]) -> list[Missing]:
    """The samples have the same numbers and other values: by lists of the training's own, or by late generators."""
    if known:
        return []
    lists = [part for part in resumed.parts if part.kind == "number" and str(part.rows[0].before).startswith("[")]
    if lists and not lists[0].rows[0].gone:
        return [of_part("data-order", lists[0])]
    late = [name for name in RNG if _is_late(name, resumed)]
    if not late:
        return []
    more = (
        "the first resumed batch has the same samples and other numbers in them, and the generator is the same after it"
    )
    return [Missing(name, "", f"{title(name)} is restored one batch too late: {more}") for name in late]


def _is_late(name: str, resumed: Resumed) -> bool:
    """The generator is the same at the first resumed forward pass, and was not as the batches were begun."""
    began = {resumed.began.get(name), *resumed.saved.get(name, ())}
    same = resumed.before[0].told.get("rng", {}).get(name) == resumed.after[0].told.get("rng", {}).get(name)
    return same and bool(resumed.begins.get(name)) and not began & set(resumed.begins[name])

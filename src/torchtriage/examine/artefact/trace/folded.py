"""What one detector says of each of very many ranks, in one row."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from torchtriage.examine.artefact.trace.fewer import MANY
from torchtriage.examine.detector import Sighting

PART = 8
"""The row has the value that more than one in so many of the ranks reach. What fewer show is no matter of the job; they
are named, and where they are late, that is said of them."""
_NAMED = 3


def folded(sightings: Sequence[Sighting]) -> list[Sighting]:
    """SIGHTINGS, those of MANY and more ranks as one: at the place of the worst, with how many, from what to what."""
    ranks = {each.place.rank for each in sightings}
    if len(ranks) < MANY or len(ranks) < len(sightings) or None in ranks:
        return list(sightings)
    order = sorted(sightings, key=lambda each: (-(each.value or 0.0), each.place.rank or 0))
    worst, shown = order[0], order[len(order) // PART]
    named = ", ".join(f"{each.place.rank}{f' ({_said(each)})' if _said(each) else ''}" for each in order[:_NAMED])
    if worst.value is None:
        return [replace(worst, fact=f"{worst.fact}; on {len(order):,} ranks, first of them {named}")]
    fact = f"{shown.fact} on rank {shown.place.rank}, and as much or more on an eighth of {len(order):,} ranks"
    return [replace(shown, place=worst.place, fact=f"{fact}: {_said(order[-1])} to {_said(worst)}, most on {named}")]


def _said(seen: Sighting) -> str:
    if seen.value is None:
        return ""
    return f"{seen.value:.0%}" if seen.unit and seen.unit.startswith("of ") else f"{seen.value:.3g}"

"""Where a fault is seen: one finding for each file, one sentence for the places that it is true of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from keyword import iskeyword

from msgspec.structs import replace

from torchtriage.core.evidence import Evidence, Place
from torchtriage.core.finding import Finding
from torchtriage.core.some import some
from torchtriage.report.text import line

LINES = 12
"""Lines of one file that are named beside each other."""
_WORD = re.compile(r"\w+")
# What only a name, a call or a figure has: torch.ones(), `head`, g_losses, 65536.
_OF_CODE = re.compile(r"[\d_`]|\w[.(]\w?")


def by_file(findings: Iterable[Finding]) -> tuple[tuple[Finding, ...], ...]:
    """FINDINGS of source by fault and file, each other one by itself, in the order of the first of each."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for number, finding in enumerate(findings):
        place = finding.evidence[0].place
        key = (finding.fault.slug, place.path) if all(map(is_of_source, finding.evidence)) else (number,)
        groups.setdefault(key, []).append(finding)
    return tuple(map(tuple, groups.values()))


def joined(group: Sequence[Finding]) -> Finding:
    """One finding with the evidence of all of GROUP."""
    evidence = [item for finding in group for item in finding.evidence]
    return replace(group[0], evidence=some(evidence, f"evidence for {group[0].fault.slug}"))


def is_of_source(item: Evidence) -> bool:
    """Whether ITEM was seen in the text of a file, not measured."""
    return item.detector.startswith("source/") and item.place.path is not None and item.value is None


def gathered(evidence: Iterable[Evidence]) -> list[list[Evidence]]:
    """EVIDENCE by the sentence that says it: places in source that differ in names and figures only stand together.

    Of what is said twice of one line, what quotes it is kept.
    """
    groups: list[list[Evidence]] = []
    for item in _once(evidence):
        group = next((each for each in groups if _are_alike(each[0], item)), None)
        if group is None:
            groups.append([item])
        else:
            group.append(item)
    return groups


def _once(evidence: Iterable[Evidence]) -> list[Evidence]:
    found: dict[tuple[object, ...], Evidence] = {}
    for number, item in enumerate(evidence):
        place = item.place
        key = (place.path, place.cell, place.line) if is_of_source(item) and place.line is not None else (number,)
        if key not in found or (found[key].place.anchor is None and place.anchor is not None):
            found[key] = item
    return list(found.values())


def _are_alike(one: Evidence, other: Evidence) -> bool:
    if not (is_of_source(one) and is_of_source(other)):
        return False
    pairs = [item.fact.split() for item in (one, other)]
    return len(pairs[0]) == len(pairs[1]) and all(
        left == right or (_is_named(left, one.place) and _is_named(right, other.place))
        for left, right in zip(*pairs, strict=True)
    )


def _is_named(word: str, place: Place) -> bool:
    """Whether WORD is a figure, or a name of the user's code rather than a word of the sentence."""
    if _OF_CODE.search(word):
        return True
    parts, own = set(_WORD.findall(word)), set(_WORD.findall(place.anchor or ""))
    return bool(parts) and parts <= {each for each in own if not iskeyword(each)}


def by_spot(group: Sequence[Evidence]) -> list[list[Evidence]]:
    """GROUP by file, and by cell of a notebook."""
    spots: dict[tuple[object, ...], list[Evidence]] = {}
    for item in group:
        spots.setdefault((item.place.path, item.place.cell), []).append(item)
    return list(spots.values())


def spelt(spot: Sequence[Evidence]) -> str:
    """The places of one file: train.py:12:5, or train.py:12, 40, 88."""
    first = spot[0].place
    if len(spot) == 1 or first.path is None:
        return line(str(first))
    more = f" and {len(spot) - LINES} more" if len(spot) > LINES else ""
    cell = f" in cell {first.cell}" if first.cell is not None else ""
    return f"{line(first.path)}:{lines(spot[:LINES])}{more}{cell}"


def lines(items: Iterable[Evidence]) -> str:
    """The lines of ITEMS, with commas."""
    return ", ".join(str(item.place.line) for item in items)


def shared_fact(group: Sequence[Evidence]) -> str:
    """What is true of all places of GROUP; where their names or figures differ, with the place that it quotes."""
    first = group[0]
    if all(item.fact == first.fact for item in group):
        return line(first.fact)
    alone = len(by_spot(group)) == 1
    where = f"line {first.place.line}" if alone else f"{first.place.path}:{first.place.line}"
    return line(f"{where}: {first.fact}")

"""What an answer is worth: exact parts first, then the points that a pattern or a judge has decided."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from torchtriage_evals import answer as read
from torchtriage_evals.scenario import Point, Scenario

NEEDLESS = -0.5  # what a fix costs where nothing is broken


class Judged(Struct, frozen=True):
    """Whether a point is made; None, with the reason, where that is not known."""

    made: bool | None
    why: str = ""
    quote: str = ""


class Score(Struct, frozen=True):
    """value: the mean of the parts, each at most 1; None without parts."""

    value: float | None
    parts: dict[str, float]
    unscored: dict[str, int]


def score(
    scenario: Scenario, answer: str, points: Mapping[str, Judged], ran: Judged | None = None, before: str = ""
) -> Score:
    """What ANSWER is worth. RAN: what the check of its program said. BEFORE: the program that was shown."""
    parts: dict[str, float] = {}
    if scenario.route or scenario.question:
        parts["route"] = float(_routed(scenario, answer))
    if scenario.refer_to:
        parts["scope"] = float(read.referral(answer) == scenario.refer_to)
    if scenario.cause:
        parts["cause"] = float((read.said("CAUSE", answer) or "") == scenario.cause.lower())
    if scenario.kind == "healthy" and scenario.program:
        parts["sound"] = _left_alone(answer, before)
    if ran is not None and ran.made is not None:
        parts["program"] = float(ran.made)
    made = _made(scenario.points, points)
    if made is not None:
        parts["points"] = made
    value = sum(parts.values()) / len(parts) if parts else None
    return Score(value, parts, _unscored([*points.values(), *([ran] if ran else [])]))


def mechanical(points: tuple[Point, ...], answer: str) -> dict[str, Judged]:
    """The points that a pattern decides."""
    return {point.id: Judged(point.made(answer)) for point in points if point.pattern}


def _routed(scenario: Scenario, answer: str) -> bool:
    route = read.route(answer)
    if scenario.question:
        return route == ("question",)
    return route in (scenario.route, *scenario.also)


def _left_alone(answer: str, before: str) -> float:
    """1 for sound and untouched, 0 for what does not say so; a changed program costs."""
    after = read.program(answer, before)
    fixed = after is not None and read.changed(before, after)
    return float(read.said("VERDICT", answer) == "sound") + (NEEDLESS if fixed else 0.0)


def _made(points: tuple[Point, ...], judged: Mapping[str, Judged]) -> float | None:
    """The share of good points that are made, less the harmful ones; None where no good one could be judged."""
    known = [point for point in points if point.id in judged and judged[point.id].made is not None]
    good = [point for point in known if not point.harmful]
    if not good:
        return None
    harm = sum(bool(judged[point.id].made) for point in known if point.harmful)
    return max(-1.0, (sum(bool(judged[point.id].made) for point in good) - harm) / len(good))


def _unscored(judged: list[Judged]) -> dict[str, int]:
    reasons = [each.why for each in judged if each.made is None]
    return {why: reasons.count(why) for why in sorted(set(reasons))}

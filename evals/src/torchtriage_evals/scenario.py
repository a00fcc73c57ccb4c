"""A scenario: what a user writes, and what a good answer does. It refuses what makes no sense."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from msgspec import Struct

Kind: TypeAlias = Literal["route", "code", "evidence", "advice", "healthy", "scope", "trigger", "mix"]
Pressure: TypeAlias = Literal["time", "authority", "sunk-cost", "exhaustion", "suggestion", "confidence", "three"]

SPECIALISTS = (
    "tensor-operations-and-memory",
    "module-design-patterns",
    "distributed-training-strategies",
    "mixed-precision-and-optimization",
    "performance-profiling",
    "debugging-techniques",
    "checkpointing-and-reproducibility",
    "custom-autograd-functions",
)
FIELDS = (
    "training-optimization",
    "neural-architectures",
    "ml-production",
    "other-framework",
    "environment",
    "theory",
)
PRESSURES: tuple[Pressure, ...] = (
    "time",
    "authority",
    "sunk-cost",
    "exhaustion",
    "suggestion",
    "confidence",
    "three",
)
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class Point(Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that an answer does, or, if harmful, must not do.

    text: the sentence that a judge reads. pattern: a regular expression (ignoring case, over lines) that decides
    it without a judge, or empty; it is found in the text, too. A harmful point that an answer makes counts against it.
    """

    id: str
    text: str
    harmful: bool = False
    pattern: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.id) or not self.text.strip():
            raise ValueError(f"point {self.id!r}: an id of small letters and hyphens, and a sentence")
        if self.pattern:
            self._try()

    def made(self, answer: str) -> bool:
        """Whether the pattern is found in ANSWER."""
        return bool(re.search(self.pattern, answer, re.IGNORECASE | re.MULTILINE))

    def _try(self) -> None:
        try:
            empty, own = self.made(""), self.made(self.text)
        except re.error as error:
            raise ValueError(f"point {self.id!r}: {self.pattern!r} is no regular expression: {error}") from error
        if empty or not own:
            where = "an empty answer" if empty else "the point's own text"
            raise ValueError(
                f"point {self.id!r}: its pattern {self.pattern!r} is {'' if empty else 'not '}found in {where}"
            )


class Scenario(Struct, frozen=True, forbid_unknown_fields=True):
    """What one user writes, and what a good answer does.

    family: scenarios of one bug or question in other words, drawn together by the statistics.
    route, also: the specialists in their order, and other orders that an expert would accept.
    refer_to: the field that a question outside of ours belongs to. question: one question is to be asked back.
    points: what the answer does and must not do. program: the folder below programs/ that the answer has to mend,
    or, of kind healthy, has to leave alone. artefact: the file below artefacts/ that is shown. cause, labels: the
    right one of the labels that are offered. triggers: whether the skill has to be opened for it.
    pressures: those that may be put on it.

    route: a route, or a question. code: a program with a planted bug. evidence: an artefact and its cause.
    advice: points. healthy: sound code, or a premise that is wrong: needless fixes cost. scope: another field's.
    trigger: whether the skill is opened. mix: a route and points, of several techniques at once.
    """

    id: str
    family: str
    kind: Kind
    query: str
    route: tuple[str, ...] = ()
    also: tuple[tuple[str, ...], ...] = ()
    question: bool = False
    refer_to: str = ""
    points: tuple[Point, ...] = ()
    program: str = ""
    artefact: str = ""
    cause: str = ""
    labels: tuple[str, ...] = ()
    triggers: bool | None = None
    pressures: tuple[Pressure, ...] = PRESSURES

    def __post_init__(self) -> None:
        wrong = next((said for said in (*_of_names(self), *_of_kind(self)) if said), None)
        if wrong:
            raise ValueError(f"scenario {self.id!r}: {wrong}")


NEEDS: dict[Kind, tuple[tuple[str, ...], ...]] = {
    "route": (("route", "question"),),
    "code": (("program",),),
    "evidence": (("artefact",), ("cause",), ("labels",)),
    "advice": (("points",),),
    "healthy": (("program", "points"),),
    "scope": (("refer_to",),),
    "trigger": (("triggers",),),
    "mix": (("route",), ("points",)),
}
"""Of each kind, what it must have: one of each group."""
MAY: dict[Kind, tuple[str, ...]] = {
    "route": ("also",),
    "code": ("points", "route"),
    "evidence": ("points", "route"),
    "advice": ("also", "route"),
    "healthy": (),
    "scope": ("points",),
    "trigger": (),
    "mix": ("also",),
}
"""What it may have besides."""
_PARTS = ("route", "also", "question", "refer_to", "points", "program", "artefact", "cause", "labels", "triggers")


def _of_names(one: Scenario) -> list[str]:
    points = [point.id for point in one.points]
    routes = {name for route in (one.route, *one.also) for name in route}
    return [
        "" if _NAME.fullmatch(one.id) and _NAME.fullmatch(one.family) else "id and family are names with hyphens",
        "" if one.query.strip() else "an empty query",
        "" if routes <= set(SPECIALISTS) else f"no specialists: {', '.join(sorted(routes - set(SPECIALISTS)))}",
        "" if one.refer_to in ("", *FIELDS) else f"refer_to {one.refer_to!r} is none of {', '.join(FIELDS)}",
        "" if len(points) == len(set(points)) else "two points of one id",
        "" if len(set(one.pressures)) == len(one.pressures) else "a pressure twice",
    ]


def _of_kind(one: Scenario) -> list[str]:
    has = {name for name in _PARTS if getattr(one, name) not in ((), "", False, None)}
    has |= {"triggers"} if one.triggers is not None else set()
    lacks = [group for group in NEEDS[one.kind] if not has & set(group)]
    allowed = {name for group in NEEDS[one.kind] for name in group} | set(MAY[one.kind])
    return [
        f"kind {one.kind} needs {' or '.join(lacks[0])}" if lacks else "",
        f"kind {one.kind} has no {', '.join(sorted(has - allowed))}" if has - allowed else "",
        "a route or a question, not both" if one.route and one.question else "",
        "its only points are harmful" if one.points and all(point.harmful for point in one.points) else "",
        f"cause {one.cause!r} is not among its labels" if one.cause and one.cause not in one.labels else "",
    ]

"""The curves of one training, by what they are: losses, norms of gradients, loss scales, learning rates."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.detector import CannotSee, view
from torchtriage.examine.run.job.events import GradNorm, Step, to_row
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.series.quantiles import thinned

Points = tuple[tuple[int, float], ...]

_KINDS = {
    "scale": re.compile(r"(?:^|[/_ .-])(?:loss|amp|grad|scaler)?[_ .-]?scale$"),
    "grad_norm": re.compile(r"grad(?:ient)?s?[/_ .-]?(?:\d\.\d[/_ .-])?(?:global[/_ .-]?)?norm(?:[/_ .-]?total)?$"),
    "rate": re.compile(r"(?:^|[/_ .-])(?:lr|learning[_ -]?rate)(?:[/_ .-][\w-]*)?$"),
    "loss": re.compile(r"(?:^|[/_ .-])loss(?:[/_ .-](?:step|train|total))?$"),
}
_HELD_OUT = re.compile(r"(?:^|[/_ .-])(?:val|valid|validation|test|eval|dev)(?:[/_ .-]|$)")
_EACH_STEP = re.compile(r"step$|train")


@dataclass(frozen=True)
class Curve:
    """The series of one training. path: its file, or the last of several. points: (step, value) by name, in order."""

    path: str
    points: dict[str, Points]

    def named(self, kind: str) -> list[str]:
        """The names of the series of one kind: loss, grad_norm, scale or rate; those of training alone, best first."""
        pattern = _KINDS[kind]
        fitting = [name for name in self.points if pattern.search(name.lower()) and not _HELD_OUT.search(name.lower())]
        return sorted(fitting, key=lambda name: (not _EACH_STEP.search(name.lower()), -len(self.points[name]), name))

    def first(self, kind: str) -> Points:
        """The series that tells most of one kind; empty where there is none."""
        names = self.named(kind)
        return self.points[names[0]] if names else ()

    @cached_property
    def record(self) -> RankRecord:
        """The curve as a run writes it, for detectors that look at losses and norms alone."""
        steps = [Step(step=step, loss=value) for step, value in dict(self.first("loss")).items()]
        norms = [GradNorm(optimizer=0, at=step, value=value) for step, value in self.first("grad_norm")]
        return RankRecord(0, tuple(map(to_row, (*steps, *norms))))


@dataclass(frozen=True)
class Curves:
    """The curves of all trainings that were named, one for each folder."""

    paths: tuple[str, ...]
    each: tuple[Curve, ...] = ()
    inconclusive: tuple[Inconclusive, ...] = ()


@view(Curve, of=Curves)
def _by_training(curves: Curves) -> Iterable[Curve]:
    if not curves.each:
        why = next(iter(curves.inconclusive), None)
        raise CannotSee(why.why if why else "no series was read", why.unblock if why else "Name another file.")
    return curves.each


def measurements(curves: Curves) -> dict[str, Any]:
    """Of each training its series of loss, norm, scale and rate, at most 200 points each, and what others there are."""
    return {"trainings": [_told(curve) for curve in curves.each]}


def _told(curve: Curve) -> dict[str, Any]:
    known = {kind: names[0] for kind in _KINDS if (names := curve.named(kind))}
    drawn = {kind: [list(point) for point in thinned(curve.points[name])] for kind, name in known.items()}
    others = sorted(set(curve.points) - set(known.values()))
    return {"path": curve.path, "names": known, **drawn, "others": others[:100]}

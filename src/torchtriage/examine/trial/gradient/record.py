"""What the trial of a gradient showed: one result for each situation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.detector import CannotSee, view
from torchtriage.examine.trial.gradient.asked import Asked

Result = dict[str, Any]
LOOKED = ("right", "wrong")


@dataclass(frozen=True)
class GradientTrial:
    """results: in the order in which they were made; each has check and state, and by its state more.

    state: right, wrong (says, method, path, line; where they are known input, name, entry, analytical, numerical,
    explains, why), unseen (why, unblock), absent (note). facts: the function and its inputs, in words.
    """

    target: str
    facts: dict[str, Any] = field(default_factory=dict)
    results: tuple[Result, ...] = ()

    @property
    def inconclusive(self) -> tuple[Inconclusive, ...]:
        """What could not be judged, each with its reason."""
        return tuple(
            Inconclusive(f"gradcheck/{_slug(each['check'])}", each["why"], each["unblock"])
            for each in self.results
            if each["state"] == "unseen"
        )

    def all(self, state: str) -> list[Result]:
        """The results of one state."""
        return [each for each in self.results if each["state"] == state]

    def of(self, *checks: str) -> list[Result]:
        """The results of some checks, that could be looked at."""
        return [each for each in self.results if each["check"] in checks and each["state"] in LOOKED]


@view(GradientTrial, of=GradientTrial)
def _whole(trial: GradientTrial) -> Iterable[GradientTrial]:
    """The trial, where its first check could be looked at: the others are held against that."""
    if trial.of("backward"):
        return [trial]
    first = next((each for each in trial.results if each["state"] == "unseen"), None)
    if first is None:
        raise CannotSee("the trial left no result", "Run it again.")
    raise CannotSee(first["why"], first["unblock"])


def gathered(asked: Asked, lines: Sequence[dict[str, Any]]) -> GradientTrial:
    """The trial, from the lines that its processes wrote; of a check that was run twice the first result holds."""
    facts = next((each for each in lines if each["kind"] == "subject"), {})
    results: list[Result] = []
    starts: set[str] = set()
    for each in (line for line in lines if line["kind"] == "result"):
        kept = {name: value for name, value in each.items() if name != "kind"}
        if kept not in results and not (each["check"] in starts and each["check"] != "backward"):
            results.append(kept)
        starts.add(each["check"])
    return GradientTrial(asked.target, {name: value for name, value in facts.items() if name != "kind"}, tuple(results))


def measurements(trial: GradientTrial) -> dict[str, Any]:
    """The function, its inputs and every check with what it gave."""
    return {"gradcheck": {"target": trial.target, **trial.facts, "checks": list(trial.results)}}


def _slug(check: str) -> str:
    return check.replace(" ", "-")

"""What the trial of a gradient shows of the user's autograd functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.trial.gradient.record import GradientTrial

_SITUATIONS = {
    "backward": "",
    "needs-input-grad": "some inputs only: ",
    "twice": "called twice: ",
    "two-calls": "two calls: ",
    "same-twice": "",
    "in-place": "in place: ",
    "grad-output": "in place: ",
    "grad-output layout": "layout: ",
    "input layout": "layout: ",
    "one-output": "one output: ",
    "broadcast": "broadcast: ",
    "batched": "batched: ",
    "double-backward": "double backward: ",
    "forward-mode": "",
    "vmap": "",
    "autocast": "",
}


@detector("trial/gradient-wrong")
def gradient_wrong(trial: GradientTrial) -> Iterator[Sighting]:
    """The gradient is not the derivative."""
    for each in trial.all("wrong"):
        yield Sighting(_place(each), f"{_function(trial, each)}: {_SITUATIONS.get(each['check'], '')}{_said(each)}")


@detector("trial/dirty-not-marked")
def dirty_not_marked(trial: GradientTrial) -> Iterator[Sighting]:
    """Forward changes an input that needs a gradient in place, and does not mark it dirty."""
    for each in trial.all("wrong"):
        for name in each.get("dirty", ()):
            yield Sighting(
                _place(each), f"{_function(trial, each)} changes its input {name} in place, without ctx.mark_dirty"
            )


@detector("trial/grad-output-edited")
def grad_output_edited(trial: GradientTrial) -> Iterator[Sighting]:
    """Backward changes the gradient that it is given in place."""
    for each in trial.all("wrong"):
        if each.get("edited"):
            yield Sighting(_place(each), f"{_function(trial, each)}: {each['says']}")


@detector("trial/tensor-on-ctx")
def tensor_on_ctx(trial: GradientTrial) -> Iterator[Sighting]:
    """Forward leaves an input or an output on ctx, outside of save_for_backward."""
    for each in trial.of("ctx"):
        held = each.get("on_ctx")
        if held:
            name = f"ctx.{held['attribute']}"
            fact = f"{name} is {held['what']} of forward, and backward leaves it there"
            yield Sighting(_place(each, container=name), f"{trial.facts.get('name', trial.target)}: {fact}")


@detector("trial/autocast-not-handled")
def autocast_not_handled(trial: GradientTrial) -> Iterator[Sighting]:
    """Under autocast the function raises, and nothing says that it is made for it."""
    for each in trial.results:
        if each["state"] == "unseen" and each.get("autocast"):
            yield Sighting(_place(each), f"{trial.facts.get('name', trial.target)}: {each['autocast']}")


def _function(trial: GradientTrial, result: dict[str, Any]) -> str:
    return f"{trial.facts.get('name', trial.target)}.{result.get('method', 'backward')}"


def _said(result: dict[str, Any]) -> str:
    """What is wrong: where, by how much, and what explains it."""
    words = [str(result["says"])]
    if result.get("name"):
        words.append(f"input {result['input']} ({result['name']})")
    if result.get("entry") is not None:
        words.append(f"entry {result['entry']}")
    text = ", ".join(words)
    if result.get("analytical") is not None and result.get("numerical") is not None:
        text += f": analytical {result['analytical']:.6g}, numerical {result['numerical']:.6g}"
    if result.get("differ"):
        text += f"; {result['differ']} of {result['judged']} entries that were compared differ"
    return f"{text}; {result['why']}" if result.get("why") else text


def _place(result: dict[str, Any], container: str | None = None) -> Place:
    return Place(path=result.get("path"), line=result.get("line"), container=container)

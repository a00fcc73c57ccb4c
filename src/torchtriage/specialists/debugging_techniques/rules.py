"""What the source alone shows about training loops that run and do not learn."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call
from torchtriage.examine.source.steps import TrainingStep


@detector("source/gradients-not-zeroed")
def gradients_not_zeroed(step: TrainingStep) -> Iterator[Sighting]:
    """A loop calls backward and steps, and nothing in it clears the gradients."""
    if not step.ring.is_loop or step.ring.runs_once or step.hidden:
        return
    if _clears(step) or step.handed_over("optimizer") or step.unseen_method():
        return
    kinds = {part.by for _, _, parts in step.optimizing() for part in parts}
    if not kinds or "unknown" in kinds or _is_made_inside(step):
        return
    last = step.backwards[-1].call if step.backwards else None
    if last is not None and any(step.optimizing()):
        yield step.script.seen(
            last.node,
            f"the loop in line {_line(step)} adds each batch's gradients to those of all batches before: "
            f"it never calls zero_grad(){_elsewhere(step)}",
        )


def _clears(step: TrainingStep) -> bool:
    """Whether something sets gradients to zero or None; distributed autograd keeps them in a context of its own."""
    if any(_says_zero(call.tail) for call in _calls(step)) or any(step.stores(".grad")):
        return True
    return any(step.named({"torch.distributed.autograd.backward"}))


def _says_zero(tail: str) -> bool:
    return tail in ("zero", "zero_", "_foreach_zero_") or ("grad" in tail and any(w in tail for w in _EMPTY))


_EMPTY = ("zero", "clear", "reset")


def _calls(step: TrainingStep) -> Iterator[Call]:
    yield from (event.fact for event in step.events if isinstance(event.fact, Call))


def _is_made_inside(step: TrainingStep) -> bool:
    """An optimizer that is built anew in each turn works on parameters that may be new, too."""
    inside = {id(inner) for inner in ast.walk(step.ring.block.owner)}
    return any(id(part.made) in inside for _, _, parts in step.optimizing() for part in parts if part.made)


def _line(step: TrainingStep) -> int:
    return int(getattr(step.ring.block.owner, "lineno", 0))


def _elsewhere(step: TrainingStep) -> str:
    around = [step.ring.scope, *(site.scope for site in step.sites)]
    for call in step.script.calls("zero_grad"):
        if call.scope in around:
            return f" (line {call.node.lineno} does, outside of it)"
    return ""
